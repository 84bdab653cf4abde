#pragma once
// How functions report expected failures: a value or an Error, never an exception. Bugs go through base/check.h;
// damaged parts of good input are counted (model/losses.h).
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace hotlap {

// A code is for a program's decision (exit status, retry); everything else is text.
enum class ErrorCode : std::uint8_t {
  kInternal,       // our fault
  kInvalidInput,   // what the user gave cannot be used
  kNotFound,       // the thing named does not exist
  kUnsupported,    // this machine, kernel or file version has none of it
  kIo,             // the operating system refused or failed
  kCorrupt,        // stored bytes are not what was written
  kResourceLimit,  // a bound of ours was reached
  kCancelled,      // the user or a shutdown ended it
};

std::string_view to_string(ErrorCode code);

// Messages are lower case: what failed, on what, why, and what to do.
struct [[nodiscard]] Error {
  ErrorCode code;
  std::string message;
  int os_error = 0;  // errno behind it; 0: none

  // Prepends where it happened: "run.json: line 3: …".
  Error with_context(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
  }
};

// An Error that carries the text of `error_number` (an errno value): "<what>: No such file or directory".
Error errno_error(std::string_view what, int error_number);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    HOTLAP_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    HOTLAP_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    HOTLAP_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    HOTLAP_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    HOTLAP_CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }
  T value_or(T fallback) && { return ok() ? std::move(*this).value() : std::move(fallback); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() : error_{ErrorCode::kInternal, {}}, ok_(true) {}
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const& {
    HOTLAP_CHECK(!ok_);
    return error_;
  }
  Error&& error() && {
    HOTLAP_CHECK(!ok_);
    return std::move(error_);
  }

 private:
  Error error_;
  bool ok_;
};

}  // namespace hotlap

#define HOTLAP_CONCAT_INNER(a, b) a##b
#define HOTLAP_CONCAT(a, b) HOTLAP_CONCAT_INNER(a, b)

// HOTLAP_TRY(expr): returns the error of a Result<void>.
// HOTLAP_TRY_ASSIGN(auto x, expr): x is the value, or returns the error.
#define HOTLAP_TRY(expr)                                    \
  do {                                                      \
    if (auto hotlap_result = (expr); !hotlap_result.ok()) { \
      return std::move(hotlap_result).error();              \
    }                                                       \
  } while (false)
#define HOTLAP_TRY_ASSIGN(lhs, expr) HOTLAP_TRY_ASSIGN_INNER(HOTLAP_CONCAT(hotlap_result_, __LINE__), lhs, expr)
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration
#define HOTLAP_TRY_ASSIGN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  lhs = std::move(tmp).value()
// NOLINTEND(bugprone-macro-parentheses)
