#pragma once
// The rule contract: a pure function over facts. No clock, no I/O, no state; the same code runs live and offline.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "model/fact.h"
#include "model/finding.h"

namespace hotlap {

enum class ParamType : std::uint8_t { kNumber, kText, kDuration };

struct ParamDesc {
  std::string_view name;
  ParamType type = ParamType::kNumber;
  std::string_view default_text;  // "60", "2s"
  double min = 0;                 // range of a number, or of a duration in ns
  double max = 0;
  std::string_view unit;  // UCUM, empty for text
  std::string_view help;
};

// The parameters of one rule, complete: defaults, with what the user set in their place.
class Params {
 public:
  // kInvalidInput names the rule, the parameter and what it takes.
  static Result<Params> make(std::string_view rule, std::span<const ParamDesc> descriptions,
                             const std::map<std::string, std::string, std::less<>>& set_by_user);
  double number(std::string_view name) const;
  std::int64_t duration_ns(std::string_view name) const;
  const std::string& text(std::string_view name) const;

 private:
  std::map<std::string, std::variant<double, std::int64_t, std::string>, std::less<>> values_;
};

class FindingSink {
 public:
  virtual ~FindingSink() = default;
  virtual void add(Finding finding) = 0;
  // The rule ran but cannot tell: what it would need. Shown as "can't tell, because …".
  virtual void cannot_tell(std::string_view because) = 0;
};

struct RuleSpec {
  std::string_view id;  // PascalCase, stable for ever; the file is its snake_case
  std::string_view title;
  std::string_view why;                     // what it looks at and how sure it is
  std::string_view advice;                  // the kind of change it proposes
  std::span<const std::string_view> needs;  // fact kinds; the engine skips the rule, and says so, when one is missing
  std::span<const std::string_view> needs_one_of{};  // it does with any of these
  std::span<const ParamDesc> params;
  Result<void> (*evaluate)(const FactTable& facts, const Params& params, FindingSink& out) = nullptr;
};

}  // namespace hotlap
