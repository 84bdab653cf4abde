// meta.json beside other files of a run: what it ran on and with, what an hour costs, and labels. One JSON object.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "ingest/importer.h"

namespace hotlap {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20;
constexpr std::size_t kFactsMax = 1024;
constexpr std::size_t kTextMax = 1024;  // bytes of a key or a value
constexpr int kDepthMax = 8;

// Names that mean one of hotlap's own facts.
struct Known {
  std::string_view key;
  std::string_view fact;
};
constexpr std::array kKnown{Known{"framework", "framework"},
                            Known{"framework_version", "framework.version"},
                            Known{"model", "model"},
                            Known{"instance", "instance"},
                            Known{"instance_type", "instance"},
                            Known{"price", "price.per_hour"},
                            Known{"price_per_hour", "price.per_hour"},
                            Known{"prices.per_hour", "price.per_hour"},
                            Known{"usd_per_hour", "price.per_hour"},
                            Known{"currency", "price.currency"},
                            Known{"prices.currency", "price.currency"},
                            Known{"labels", "label"},
                            Known{"tags", "label"}};

class RunMetaImporter final : public StreamImporter {
 public:
  explicit RunMetaImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    bytes_ += chunk_untrusted.size();
    if (text_.size() + chunk_untrusted.size() > kBytesMax) {
      return Error{ErrorCode::kInvalidInput, format("meta.json: larger than {}", format_bytes(kBytesMax))};
    }
    text_ += as_text(chunk_untrusted);
    return {};
  }

  Result<ImportStats> finish() override {
    auto document = JsonDocument::parse(text_);
    if (!document.ok()) return std::move(document).error().with_context("meta.json");
    if (!document->root().is_object()) {
      return Error{ErrorCode::kInvalidInput, "meta.json: is no object; write {\"framework\": \"…\", \"labels\": {…}}"};
    }
    give(document->root(), {}, 0);
    if (!currency_.empty() && !is_currency_told_) out_.attribute("price.currency", currency_);
    return ImportStats{.bytes = bytes_, .events = facts_};
  }

 private:
  // "labels.team": members of members have the names of all in front.
  void give(const JsonValue& value, const std::string& path, int depth) {
    if (value.is_object() && depth < kDepthMax) {
      for (const std::string& key : value.keys()) {
        if (!key.empty() && key.size() <= kTextMax) give(value[key], path.empty() ? key : path + "." + key, depth + 1);
      }
      return;
    }
    const auto text = text_of(value);
    if (!text || facts_ == kFactsMax) return out_.count_loss("ingest.values_unreadable", 1, 0);
    ++facts_;
    const std::string name = fact_name(path);
    is_currency_told_ |= name == "price.currency";
    if (name == "price.per_hour") return give_price(*text);
    out_.attribute(name, strip_control(std::string_view(*text).substr(0, kTextMax)));
  }

  // "$1.515", "1.515 USD", "0.90 EUR/h". What is no price is counted, and told with what it says.
  void give_price(std::string_view text) {
    std::string_view rest = trim(text);
    std::string_view currency;
    for (const auto& [sign, name] : {std::pair{"$", "USD"}, std::pair{"\u20AC", "EUR"}, std::pair{"\u00A3", "GBP"}}) {
      const std::string_view mark = sign;
      if (rest.starts_with(mark))
        rest.remove_prefix(mark.size());
      else if (rest.ends_with(mark))
        rest.remove_suffix(mark.size());
      else
        continue;
      currency = name;
    }
    for (const std::string_view end : {"per hour", "/hour", "/hr", "/h"}) {
      if (rest.ends_with(end)) rest = trim(rest.substr(0, rest.size() - end.size()));
    }
    for (const std::string_view code : {"USD", "EUR", "GBP"}) {
      if (rest.ends_with(code))
        rest.remove_suffix(code.size());
      else if (rest.starts_with(code))
        rest.remove_prefix(code.size());
      else
        continue;
      currency = code;
    }
    rest = trim(rest);
    if (!parse_f64(rest)) {
      out_.count_loss("ingest.values_unreadable", 1, 0);
      out_.attribute("import.price",
                     format("\"{}\" is no price: a number was expected", strip_control(text.substr(0, 64))));
      return;
    }
    out_.attribute("price.per_hour", rest);
    if (!currency.empty()) currency_ = currency;
  }

  static std::optional<std::string> text_of(const JsonValue& value) {
    if (auto text = value.text()) return text;
    if (const auto whole = value.integer()) return format("{}", *whole);
    if (const auto number = value.number()) return format("{}", *number);
    if (const auto truth = value.truth()) return *truth ? "true" : "false";
    if (!value.is_array()) return std::nullopt;
    std::string list;
    for (const JsonValue& item : value.items()) {
      const auto text = text_of(item);
      if (!text || list.size() > kTextMax) return std::nullopt;
      list += (list.empty() ? "" : ", ") + *text;
    }
    return list;
  }

  static std::string fact_name(const std::string& path) {
    std::string clean = strip_control(path);
    const auto* const known = std::ranges::find(kKnown, std::string_view(clean), &Known::key);
    if (known != kKnown.end()) return std::string(known->fact);
    const std::size_t dot = clean.find('.');
    const auto* const group = std::ranges::find(kKnown, std::string_view(clean).substr(0, dot), &Known::key);
    if (dot != std::string::npos && group != kKnown.end() && group->fact == "label") {
      return "label" + clean.substr(dot);
    }
    return "meta." + clean;
  }

  ImportSink& out_;
  std::string text_;
  std::uint64_t bytes_ = 0;
  std::uint64_t facts_ = 0;
  std::string currency_;  // that stood beside the price
  bool is_currency_told_ = false;
};

// By its name; it holds nothing else that would tell.
bool sniff(ByteView head_untrusted, std::string_view file_name) {
  return file_name == "meta.json" && trim(as_text(head_untrusted)).starts_with('{');
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<RunMetaImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_run_meta{.name = "run_meta",
                                                      .summary = "meta.json: framework, prices and labels of a run.",
                                                      .extensions = "meta.json",
                                                      .priority = 400,
                                                      .sniff = sniff,
                                                      .open_stream = open_stream};

}  // namespace hotlap
