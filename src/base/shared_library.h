#pragma once
// A library that is looked for at run time: drivers are not there on every machine. It stays loaded until the process
// ends, since a driver's library may leave threads and exit handlers behind.
#include <initializer_list>
#include <string>

#include "base/result.h"

namespace hotlap {

// Cheap to copy. Thread-safe.
class SharedLibrary {
 public:
  // `name` as dlopen takes it. kNotFound: it is not there or cannot be loaded; the message says why. Runs the library's
  // own start code: from a lane that may block.
  static Result<SharedLibrary> open(const std::string& name);

  // Sets `function` to the first of `names` that the library has; to null when it has none.
  template <class F>
  void bind(F*& function, std::initializer_list<const char*> names) const {
    function = nullptr;
    for (const char* name : names) {
      if (void* found = symbol(name); found != nullptr) {
        function = reinterpret_cast<F*>(found);
        return;
      }
    }
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* symbol(const char* name) const;

  void* handle_;
};

}  // namespace hotlap
