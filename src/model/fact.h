#pragma once
// Facts: what analyzers derive from samples, spans and steps, and all that rules may look at.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hotlap {

struct FactField {
  std::string_view name;
  std::string_view unit;  // UCUM; "text" for text
  std::string_view help;
};

// A kind of fact with its typed fields; the producer's spec owns it. One kind has one producer.
struct FactSchema {
  std::string_view kind;  // "steps.summary"
  std::string_view help;
  std::span<const FactField> fields;
};

// Where a fact or finding holds; absent parts mean "all".
struct Where {
  std::string node;
  std::optional<std::int32_t> rank;
  std::string device;   // "gpu0", "core 3"
  std::string process;  // slot label
  friend auto operator<=>(const Where&, const Where&) = default;
};

// A field is absent when it is unknown: missing is never 0.
using FactValue = std::variant<double, std::string>;
struct Fact {
  std::string_view kind;
  Where where;
  std::map<std::string, FactValue, std::less<>> fields;

  std::optional<double> number(std::string_view field) const {
    const auto found = fields.find(field);
    if (found == fields.end()) return std::nullopt;
    const double* value = std::get_if<double>(&found->second);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  std::optional<std::string> text(std::string_view field) const {
    const auto found = fields.find(field);
    if (found == fields.end()) return std::nullopt;
    const std::string* value = std::get_if<std::string>(&found->second);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  Fact& set(std::string_view field, std::optional<double> value) {
    if (value) fields.insert_or_assign(std::string(field), *value);
    return *this;
  }
  Fact& set_text(std::string_view field, std::string value) {
    fields.insert_or_assign(std::string(field), std::move(value));
    return *this;
  }
};

// All facts of a run at one moment.
class FactTable {
 public:
  void add(Fact fact) { facts_.push_back(std::move(fact)); }
  // The facts of one kind, in the order they were added.
  std::vector<const Fact*> all(std::string_view kind) const {
    std::vector<const Fact*> found;
    for (const Fact& fact : facts_) {
      if (fact.kind == kind) found.push_back(&fact);
    }
    return found;
  }
  // The first fact of a kind, or null.
  const Fact* find(std::string_view kind) const {
    for (const Fact& fact : facts_) {
      if (fact.kind == kind) return &fact;
    }
    return nullptr;
  }
  const std::vector<Fact>& facts() const { return facts_; }

 private:
  std::vector<Fact> facts_;
};

}  // namespace hotlap
