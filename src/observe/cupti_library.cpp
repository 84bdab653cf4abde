#include "observe/cupti_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hotlap::cupti {
namespace {

// CUDA 11 numbered it by minor version.
constexpr const char* kNames[] = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7",
                                  "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3",
                                  "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so"};
constexpr const char* kFolders[] = {"extras/CUPTI/lib64", "lib64"};

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_cupti(std::string_view path) { return file_name(path).starts_with("libcupti.so"); }

void* open_below(const char* root) {
  for (const char* folder : kFolders) {
    char path[512];
    std::snprintf(path, sizeof path, "%s/%s/libcupti.so", root, folder);
    if (void* library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL); library != nullptr) return library;
  }
  return nullptr;
}

// What is loaded already, whatever it is called.
void* open_loaded() {
  char found[512] = "";
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* path) {
        if (info->dlpi_name == nullptr || !is_cupti(info->dlpi_name) || std::strlen(info->dlpi_name) >= sizeof found) {
          return 0;
        }
        std::strcpy(static_cast<char*>(path), info->dlpi_name);
        return 1;
      },
      found);
  return found[0] == '\0' ? nullptr : ::dlopen(found, RTLD_NOLOAD | RTLD_LAZY);
}

void* open_any() {
  if (void* library = open_loaded(); library != nullptr) return library;
  if (const char* given = std::getenv("HOTLAP_CUPTI_LIBRARY"); given != nullptr && *given != '\0') {
    return ::dlopen(given, RTLD_LAZY | RTLD_LOCAL);
  }
  for (const char* name : kNames) {
    if (void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL); library != nullptr) return library;
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (void* library = root == nullptr ? nullptr : open_below(root); library != nullptr) return library;
  }
  return open_below("/usr/local/cuda");
}

template <class F>
bool get(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool Library::bind(void* library) {
  Functions& f = functions_;
  get(library, "cuptiGetVersion", f.get_version);
  get(library, "cuptiGetResultString", f.get_result_string);
  get(library, "cuptiActivityGetNumDroppedRecords", f.get_dropped);
  get(library, "cuptiGetCallbackName", f.get_callback_name);
  get(library, "cuptiSetThreadIdType", f.set_thread_id_type);
  get(library, "cuptiGetThreadIdType", f.get_thread_id_type);
  return get(library, "cuptiGetTimestamp", f.get_timestamp) && get(library, "cuptiSubscribe", f.subscribe) &&
         get(library, "cuptiUnsubscribe", f.unsubscribe) &&
         get(library, "cuptiActivityRegisterCallbacks", f.register_buffers) &&
         get(library, "cuptiActivityEnable", f.enable) && get(library, "cuptiActivityDisable", f.disable) &&
         get(library, "cuptiActivityFlushAll", f.flush_all) &&
         get(library, "cuptiActivityGetNextRecord", f.get_next_record);
}

const char* Library::open() {
  void* library = open_any();
  if (library == nullptr) return "libcupti is not found: LD_LIBRARY_PATH or HOTLAP_CUPTI_LIBRARY may say where it is";
  if (!bind(library)) return "libcupti lacks functions of CUDA 11 or later";
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(functions_.enable), &info) != 0 && info.dli_fname != nullptr) {
    const std::string_view name = file_name(info.dli_fname);
    std::snprintf(name_, sizeof name_, "%.*s", static_cast<int>(name.size()), name.data());
    std::snprintf(path_, sizeof path_, "%s", info.dli_fname);
  }
  return nullptr;
}

bool Library::is_alone() const {
  const bool has_other = ::dl_iterate_phdr(
                             [](dl_phdr_info* info, std::size_t, void* own) {
                               return info->dlpi_name != nullptr && is_cupti(info->dlpi_name) &&
                                              std::strcmp(info->dlpi_name, static_cast<const char*>(own)) != 0
                                          ? 1
                                          : 0;
                             },
                             const_cast<char*>(path_)) != 0;
  return !has_other;
}

}  // namespace hotlap::cupti
