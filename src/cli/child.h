#pragma once
// A foreign program that is asked something: bounded in time and in what it may say, gone when the call returns.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace hotlap {

struct ChildAnswer {
  std::string output;  // standard output and error together, cut at the bound
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool is_timed_out = false;  // it was killed, with all that it started in its session

  bool ok() const { return exit_code == 0; }
};

// `words[0]` is looked up on PATH. Standard input is /dev/null. kNotFound or kIo when it cannot be started.
Result<ChildAnswer> ask_child(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                              std::int64_t timeout_ns);

}  // namespace hotlap
