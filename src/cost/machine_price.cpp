#include "cost/machine_price.h"

#include "base/format.h"
#include "base/text.h"
#include "cost/price.h"

namespace hotlap {
namespace {

constexpr std::size_t kCurrencyMax = 8;  // bytes

std::optional<std::string> attribute(const std::map<std::string, std::string>& attributes, const std::string& name) {
  const auto found = attributes.find(name);
  return found == attributes.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<Price> machine_price(const RunInfo& run, const std::map<std::string, std::string>& attributes_untrusted) {
  if (run.price) return run.price;
  if (const auto text = attribute(attributes_untrusted, "price.per_hour")) {
    const auto number = parse_f64(*text);
    if (number) {
      if (Result<Price> price = price_per_hour(*number); price.ok()) {
        price->source = "meta.json";
        const auto currency = attribute(attributes_untrusted, "price.currency");
        if (currency && currency->size() <= kCurrencyMax) price->currency = *currency;
        return std::move(price).value();
      }
    }
  }
  const auto instance = attribute(attributes_untrusted, "instance");
  if (!instance) return std::nullopt;
  Result<Price> price = price_of_instance(*instance);
  return price.ok() ? std::optional(std::move(price).value()) : std::nullopt;
}

Price price_of_nodes(const Price& machine, std::int64_t nodes) {
  if (nodes <= 1) return machine;
  return Price{.per_hour = machine.per_hour * static_cast<double>(nodes),
               .currency = machine.currency,
               .source = format("{}, {} nodes", machine.source, nodes)};
}

std::optional<Price> price_of_nodes(const std::optional<Price>& machine, std::int64_t nodes) {
  return machine ? std::optional(price_of_nodes(*machine, nodes)) : std::nullopt;
}

}  // namespace hotlap
