#include "base/shared_library.h"

#include <dlfcn.h>

namespace hotlap {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(handle);
  const char* why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps it per thread
  return Error{ErrorCode::kNotFound, why != nullptr ? std::string(why) : name + ": cannot be loaded"};
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace hotlap
