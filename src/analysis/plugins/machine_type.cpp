// What type of machine the job runs on, as its user, its cloud or an imported meta.json calls it.
#include <array>
#include <optional>

#include "analysis/analyzer.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::array kFields{FactField{"instance", "text", "the provider's name of the type: g5.2xlarge"}};
constexpr std::array kSchemas{FactSchema{"machine.type", "type of the machine", kFields}};
// The price of a type, as `--instance` sets it: "catalogue PROVIDER TYPE REGION DATE".
constexpr std::string_view kCatalogue = "catalogue ";

std::optional<std::string> of_price(const RunInfo* run) {
  if (run == nullptr || !run->price || !run->price->source.starts_with(kCatalogue)) return std::nullopt;
  std::string_view rest = std::string_view(run->price->source).substr(kCatalogue.size());
  const std::size_t provider = rest.find(' ');
  if (provider == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(provider + 1);
  return std::string(rest.substr(0, rest.find(' ')));
}

class MachineTypeAnalyzer final : public Analyzer {
 public:
  explicit MachineTypeAnalyzer(const RunDescription& run) : run_(run) {}

  // The machines of a run are taken to be alike.
  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const MachineTypeAnalyzer&>(other);
    if (!instance()) run_ = from.run_;
  }

  void snapshot(FactTable& out) const override {
    const auto name = instance();
    if (!name) return;
    Fact fact{.kind = "machine.type"};
    fact.set_text("instance", strip_control(*name));
    out.add(std::move(fact));
  }

 private:
  std::optional<std::string> instance() const {
    if (const auto name = of_price(run_.run)) return name;
    if (run_.recording == nullptr) return std::nullopt;
    const auto found = run_.recording->attributes.find("instance");
    return found == run_.recording->attributes.end() ? std::nullopt : std::optional(found->second);
  }

  RunDescription run_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<MachineTypeAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_machine_type{.id = "machine_type",
                                                          .summary = "Type of the machine.",
                                                          .produces = kSchemas,
                                                          .metrics = {},
                                                          .spans = {},
                                                          .open = open};

}  // namespace hotlap
