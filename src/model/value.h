#pragma once
// A sampled value, or the reason why there is none. Missing is never 0.
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace hotlap {

// Stored as one byte: append only.
enum class MissingReason : std::uint8_t {
  kNotSampled = 0,    // nobody asked at this time (gap, slower period)
  kNotSupported = 1,  // the source says it has none: "[N/A]"
  kNoPermission = 2,
  kSourceLost = 3,    // the device, core or process went away
  kReadFailed = 4,    // error or nonsense from the source
  kTimedOut = 5,      // the source did not answer in time
  kCounterReset = 6,  // a rate across a reset is unknown
  kNotMeasured = 7,   // the hook does not see this part
  kTooMany = 8,       // beyond the bound on series; counted
};
std::string_view to_string(MissingReason reason);

class Value {
 public:
  enum class Kind : std::uint8_t { kMissing, kI64, kU64, kF64 };

  constexpr Value() : Value(MissingReason::kNotSampled) {}
  static constexpr Value of(std::int64_t v) { return Value(Content(std::in_place_index<1>, v)); }
  static constexpr Value of(std::uint64_t v) { return Value(Content(std::in_place_index<2>, v)); }
  static constexpr Value of(double v) { return Value(Content(std::in_place_index<3>, v)); }
  static constexpr Value missing(MissingReason reason) { return Value(reason); }

  constexpr Kind kind() const { return static_cast<Kind>(content_.index()); }
  constexpr bool is_missing() const { return kind() == Kind::kMissing; }
  // Only for a missing value.
  constexpr MissingReason reason() const { return std::get<0>(content_); }
  // As a double (integers beyond 2^53 round); nothing when missing.
  constexpr std::optional<double> number() const {
    switch (kind()) {
      case Kind::kMissing: return std::nullopt;
      case Kind::kI64: return static_cast<double>(std::get<1>(content_));
      case Kind::kU64: return static_cast<double>(std::get<2>(content_));
      case Kind::kF64: return std::get<3>(content_);
    }
    return std::nullopt;
  }
  constexpr std::int64_t i64() const { return std::get<1>(content_); }   // only for kI64
  constexpr std::uint64_t u64() const { return std::get<2>(content_); }  // only for kU64
  constexpr double f64() const { return std::get<3>(content_); }         // only for kF64

  friend bool operator==(const Value&, const Value&) = default;

 private:
  using Content = std::variant<MissingReason, std::int64_t, std::uint64_t, double>;
  constexpr explicit Value(MissingReason reason) : content_(std::in_place_index<0>, reason) {}
  constexpr explicit Value(Content content) : content_(content) {}

  Content content_;
};

}  // namespace hotlap
