#pragma once
// The native observers that a job may carry on request: libraries beside the program that something in the job loads
// because a variable of its environment names them (docs/reference/observers.md).
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hotlap {

struct ObserverSpec {
  std::string_view name;          // as --observe takes it
  std::string_view library;       // file name
  std::string_view variable;      // of the job's environment; its value is the library's path
  std::string_view sees;          // in words
  bool needs_hook = false;        // the hook is what loads it
  bool excludes_profile = false;  // the framework's profiler needs what it uses
};
std::span<const ObserverSpec> all_observers();

// "nvtx,nccl" in the order of all_observers(), each once. kInvalidInput: no such observer.
Result<std::vector<const ObserverSpec*>> parse_observers(std::string_view text);

// Its library: in HOTLAP_OBSERVER_DIR if that is set, else in lib/hotlap beside the program or beside its folder.
// kNotFound says where it was looked for.
Result<std::filesystem::path> find_observer(const ObserverSpec& observer);

}  // namespace hotlap
