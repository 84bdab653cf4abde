#pragma once
// NVTX as a program has it: functions that do nothing until the first of them is called, which loads the library that
// NVTX_INJECTION64_PATH names and lets it put its own functions in. NVIDIA's headers are not on the machines that build
// us; what is here behaves like them as far as a tool can see. Each source file that includes it has a copy of its own,
// like a library with NVTX inside.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "observe/nvtx_abi.h"

namespace hotlap::test {
namespace {

class NvtxHost {
 public:
  template <class R, class... A>
  R call(std::uint32_t module, unsigned int number, A... arguments) {
    if (!is_ready_.load(std::memory_order_acquire)) load();
    const nvtx::Function function = *places(module)[number];
    if (function == nullptr) return R();
    return reinterpret_cast<R (*)(A...)>(function)(arguments...);
  }
  bool is_injected() {
    if (!is_ready_.load(std::memory_order_acquire)) load();
    return is_injected_;
  }

 private:
  static constexpr unsigned int kPlaces = 16;

  void load();
  nvtx::Function** places(std::uint32_t module) { return module == nvtx::kModuleCore ? core_places_ : domain_places_; }
  static const void* table_of(std::uint32_t table);
  static int function_table(std::uint32_t module, nvtx::Function*** table, unsigned int* size);

  std::atomic<bool> is_ready_{false};
  bool is_injected_ = false;
  nvtx::Function core_[kPlaces]{};
  nvtx::Function domain_[kPlaces]{};
  nvtx::Function* core_places_[kPlaces]{};
  nvtx::Function* domain_places_[kPlaces]{};
};

NvtxHost nvtx_host;

const void* NvtxHost::table_of(std::uint32_t table) {
  static const nvtx::CallbacksTable callbacks{sizeof(nvtx::CallbacksTable), &NvtxHost::function_table};
  return table == nvtx::kCallbacks ? &callbacks : nullptr;
}

int NvtxHost::function_table(std::uint32_t module, nvtx::Function*** table, unsigned int* size) {
  if (module != nvtx::kModuleCore && module != nvtx::kModuleDomains) return 0;
  *table = nvtx_host.places(module);
  *size = kPlaces;
  return 1;
}

inline void NvtxHost::load() {
  for (unsigned int i = 0; i < kPlaces; ++i) {
    core_places_[i] = &core_[i];
    domain_places_[i] = &domain_[i];
  }
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_LAZY);
  if (library != nullptr) {
    using Initialize = int (*)(nvtx::GetExportTable);
    const auto initialize = reinterpret_cast<Initialize>(::dlsym(library, "InitializeInjectionNvtx2"));
    is_injected_ = initialize != nullptr && initialize(&NvtxHost::table_of) != 0;
  }
  if (!is_injected_) {
    for (unsigned int i = 0; i < kPlaces; ++i) core_[i] = domain_[i] = nullptr;
  }
  is_ready_.store(true, std::memory_order_release);
}

// The calls that programs make, by their names in NVTX without the prefix.
inline void mark(const char* text) { nvtx_host.call<void>(nvtx::kModuleCore, nvtx::kMarkA, text); }
inline int range_push(const char* text) { return nvtx_host.call<int>(nvtx::kModuleCore, nvtx::kRangePushA, text); }
inline int range_push(const wchar_t* text) { return nvtx_host.call<int>(nvtx::kModuleCore, nvtx::kRangePushW, text); }
inline int range_push(const nvtx::EventAttributes* event) {
  return nvtx_host.call<int>(nvtx::kModuleCore, nvtx::kRangePushEx, event);
}
inline int range_pop() { return nvtx_host.call<int>(nvtx::kModuleCore, nvtx::kRangePop); }
inline nvtx::RangeId range_start(const char* text) {
  return nvtx_host.call<nvtx::RangeId>(nvtx::kModuleCore, nvtx::kRangeStartA, text);
}
inline void range_end(nvtx::RangeId id) { nvtx_host.call<void>(nvtx::kModuleCore, nvtx::kRangeEnd, id); }
inline void name_thread(std::uint32_t thread, const char* name) {
  nvtx_host.call<void>(nvtx::kModuleCore, nvtx::kNameOsThreadA, thread, name);
}
inline nvtx::Domain domain_create(const char* name) {
  return nvtx_host.call<nvtx::Domain>(nvtx::kModuleDomains, nvtx::kDomainCreateA, name);
}
inline nvtx::RegisteredString register_string(nvtx::Domain domain, const char* text) {
  return nvtx_host.call<nvtx::RegisteredString>(nvtx::kModuleDomains, nvtx::kDomainRegisterStringA, domain, text);
}
inline int domain_push(nvtx::Domain domain, const nvtx::EventAttributes* event) {
  return nvtx_host.call<int>(nvtx::kModuleDomains, nvtx::kDomainRangePushEx, domain, event);
}
inline int domain_pop(nvtx::Domain domain) {
  return nvtx_host.call<int>(nvtx::kModuleDomains, nvtx::kDomainRangePop, domain);
}
inline void name_category(nvtx::Domain domain, std::uint32_t category, const char* name) {
  nvtx_host.call<void>(nvtx::kModuleDomains, nvtx::kDomainNameCategoryA, domain, category, name);
}

inline nvtx::EventAttributes event_of(nvtx::MessageType type, nvtx::Message message) {
  nvtx::EventAttributes event{};
  event.version = 3;
  event.size = sizeof event;
  event.message_type = type;
  event.message = message;
  return event;
}

}  // namespace
}  // namespace hotlap::test
