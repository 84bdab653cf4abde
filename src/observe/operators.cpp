// libhotlap_operators.so: PyTorch's operators, always on by sampling. Loaded by the hook once torch is there; registers
// with the dispatcher what PyTorch's own profiler registers (at::addGlobalCallback), found by name in the library that
// is loaded already. No header of PyTorch's is used: what is declared here has looked the same from 1.13 on, and a
// version that nobody has tried is refused (supported_version()).
//
// Everything here runs in the job's threads and may not fail: it sees less instead.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "observe/sender.h"

extern "C" {
// Begins. `version` is torch.__version__. 0, or not 0 and a line in `reason` that says why not.
__attribute__((visibility("default"))) int hotlap_observe_operators(const char* version, char* reason,
                                                                    std::size_t reason_bytes);
}

// As in PyTorch's namespace at, with the same layouts.
namespace hotlap::torch_abi {

class RecordFunction;

// What a start callback leaves for the end callback; PyTorch deletes it through the first two places of its table of
// virtual functions.
struct CallbackState {
  virtual ~CallbackState() = default;
};

// enum RecordScope: the places in `scopes`.
inline constexpr std::size_t kScopeFunction = 0;
inline constexpr std::size_t kScopeUser = 7;
inline constexpr std::size_t kScopes = 10;

struct RecordFunctionCallback {
  std::unique_ptr<CallbackState> (*start)(const RecordFunction&) = nullptr;
  void (*end)(const RecordFunction&, CallbackState*) = nullptr;
  double sampling_probability = 1.0;
  std::array<bool, kScopes> scopes{};
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
};
static_assert(sizeof(RecordFunctionCallback) == 40);

}  // namespace hotlap::torch_abi

namespace hotlap {
namespace {

constexpr std::uint32_t kOneIn = 100;
constexpr std::uint32_t kOpenMax = 1024;

using AddGlobalCallback = std::uint64_t (*)(torch_abi::RecordFunctionCallback);
using NameOf = const char* (*)(const torch_abi::RecordFunction*);

Sender sender;
NameOf name_of;
std::uint32_t has_begun;

// A call that has begun: one of a fixed number of places, since the end may come in another thread.
class OpenCall final : public torch_abi::CallbackState {
 public:
  static void* operator new(std::size_t) noexcept;
  static void operator delete(void* place);

  std::int64_t start_ns = 0;
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
};

struct Place {
  std::uint32_t is_taken;
  alignas(OpenCall) unsigned char bytes[sizeof(OpenCall)];
};
Place places[kOpenMax];
std::uint32_t next_place;

void* OpenCall::operator new(std::size_t) noexcept {
  constexpr std::uint32_t kProbesMax = 16;
  const std::uint32_t first = add_word<std::uint32_t>(next_place, 1);
  for (std::uint32_t probe = 0; probe < kProbesMax; ++probe) {
    Place& place = places[(first + probe) % kOpenMax];
    if (load_word(place.is_taken) == 0 && swap_word<std::uint32_t>(place.is_taken, 0, 1)) return place.bytes;
  }
  sender.count_drop();
  return nullptr;
}

void OpenCall::operator delete(void* place) {
  const auto offset = static_cast<std::size_t>(static_cast<unsigned char*>(place) - places[0].bytes);
  store_word<std::uint32_t>(places[offset / sizeof(Place)].is_taken, 0);
}

std::unique_ptr<torch_abi::CallbackState> begin(const torch_abi::RecordFunction& function) {
  if (!sender.is_on()) return nullptr;
  const char* text = name_of(&function);
  if (text == nullptr) return nullptr;
  std::unique_ptr<OpenCall> call(new OpenCall);
  if (call == nullptr) return nullptr;
  call->name = sender.number_of({text, ::strnlen(text, kObserverNameBytesMax)});  // the text is gone after the call
  call->thread = sender.thread();
  call->start_ns = observer_now_ns();
  return call;
}

// What the hook sees by itself is not seen twice.
std::unique_ptr<torch_abi::CallbackState> begin_user(const torch_abi::RecordFunction& function) {
  const char* text = name_of(&function);
  for (const char* known : {"Optimizer.", "enumerate(DataLoader)"}) {
    if (text != nullptr && ::strncmp(text, known, ::strlen(known)) == 0) return nullptr;
  }
  return begin(function);
}

void send(const OpenCall& call, SpanKind kind) {
  const bool is_operator = kind == SpanKind::kOperator;
  sender.span({.start_ns = call.start_ns,
               .duration_ns = observer_now_ns() - call.start_ns,
               .value_a = -1,
               .value_b = -1,
               .name = call.name,
               .thread = call.thread,
               .kind = kind,
               .is_total = is_operator,
               .flags = 0,
               .weight = is_operator ? kOneIn : 1});
}

void end_operator(const torch_abi::RecordFunction&, torch_abi::CallbackState* call) {
  if (call != nullptr) send(*static_cast<OpenCall*>(call), SpanKind::kOperator);
}

void end_user(const torch_abi::RecordFunction&, torch_abi::CallbackState* call) {
  if (call != nullptr) send(*static_cast<OpenCall*>(call), SpanKind::kUser);
}

// The oldest and the newest that were tried, whose declarations are those above, and what lies between.
bool supported_version(const char* version) {
  constexpr long kNewestMinor = 15;
  char* rest = nullptr;
  const long major = ::strtol(version, &rest, 10);
  if (*rest != '.') return false;
  const long minor = ::strtol(rest + 1, nullptr, 10);
  return (major == 1 && minor == 13) || (major == 2 && minor <= kNewestMinor);
}

void* torch_library() {
  // Debian's carries its version; both are loaded already.
  for (const char* name : {"libtorch_cpu.so", "libtorch_cpu.so.1.13"}) {
    if (void* library = ::dlopen(name, RTLD_NOLOAD | RTLD_LAZY); library != nullptr) return library;
  }
  return nullptr;
}

const char* observe(const char* version) {
  if (!supported_version(version)) return "this version of PyTorch has not been tried";
  void* library = torch_library();
  if (library == nullptr) return "libtorch_cpu.so is not loaded";
  const auto add =
      reinterpret_cast<AddGlobalCallback>(::dlsym(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"));
  name_of = reinterpret_cast<NameOf>(::dlsym(library, "_ZNK2at14RecordFunction4nameEv"));
  if (add == nullptr || name_of == nullptr) return "libtorch_cpu.so lacks at::addGlobalCallback";
  if (!sender.start("operators")) return "the process is not recorded";
  ::pthread_atfork(nullptr, nullptr, [] { sender.after_fork(); });
  std::atexit([] { sender.finish(); });
  sender.info("observer.operators", version);
  torch_abi::RecordFunctionCallback operators;
  operators.start = begin;
  operators.end = end_operator;
  operators.sampling_probability = 1.0 / kOneIn;
  operators.scopes[torch_abi::kScopeFunction] = true;
  add(operators);
  torch_abi::RecordFunctionCallback users;
  users.start = begin_user;
  users.end = end_user;
  users.scopes[torch_abi::kScopeUser] = true;
  add(users);
  return nullptr;
}

}  // namespace
}  // namespace hotlap

int hotlap_observe_operators(const char* version, char* reason, std::size_t reason_bytes) {
  using namespace hotlap;
  if (!swap_word<std::uint32_t>(has_begun, 0, 1)) return 0;
  const char* why = observe(version);
  if (why == nullptr) return 0;
  std::snprintf(reason, reason_bytes, "%s (%s)", why, version);
  return 1;
}
