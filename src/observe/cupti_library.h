#pragma once
// CUPTI as this process has it, or could have it. A process must not get a second one: where a framework has loaded its
// own, that is it. Zeroed memory; one thread.
#include <cstddef>
#include <string_view>

#include "observe/cupti_abi.h"

namespace hotlap::cupti {

class Library {
 public:
  // Null: it is there, with all that is needed. Else what is missing.
  const char* open();
  const Functions& functions() const { return functions_; }
  // Its file's name: "libcupti.so.12".
  std::string_view name() const { return name_; }
  // Whether another file of CUPTI was loaded since.
  bool is_alone() const;

 private:
  bool bind(void* library);

  Functions functions_;
  char name_[64];
  char path_[512];
};

}  // namespace hotlap::cupti
