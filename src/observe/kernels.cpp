// libhotlap_kernels.so: kernels, copies and fills of memory as a GPU ran them, by NVIDIA's CUPTI. The CUDA driver loads
// it because CUDA_INJECTION64_PATH names it, when the program initialises CUDA.
//
// Work is watched in windows, so that it costs little whatever the program does: a window ends after its time, or when
// its buffers are filling up, and they come the more rarely the longer the program has run. A thread of ours opens and
// closes them; in the program's own threads nothing runs but what hands CUPTI a buffer. CUPTI has one client at a time:
// where there is another one we step aside for good, and between windows we are none, so that others find it free.
//
// Everything here may not fail: it sees less instead.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "observe/activity_buffers.h"
#include "observe/activity_records.h"
#include "observe/cupti_library.h"
#include "observe/gpu_index.h"
#include "observe/sender.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection();

namespace hotlap::cupti {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kPollNs = 2 * kNsPerMs;
constexpr std::int64_t kFirstWindowNs = 1'000 * kNsPerMs;
constexpr std::int64_t kWindowMsDefault = 1'000;
constexpr std::int64_t kPeriodMsDefault = 10'000;
constexpr std::int64_t kRarer = 30;  // a window after another 30th of the time that has gone by
constexpr std::int64_t kFlushNs = 500 * kNsPerMs;
constexpr std::int64_t kFlushAtEndNs = 100 * kNsPerMs;
constexpr std::int64_t kEndNs = 1'000 * kNsPerMs;  // that the end of the program may have to wait for us
constexpr std::int64_t kRoomNs = 5'000 * kNsPerMs;
constexpr std::int64_t kClockStepNs = kNsPerMs;
constexpr std::size_t kSpansMax = 7'000;  // of a window: the sender keeps so many in one burst, and the ring has room
constexpr std::size_t kSpansAtOnce = 400;
constexpr std::uint32_t kFunctionsMax = 2048;
constexpr std::size_t kStackBytes = 512 * 1024;

constexpr Kind kKinds[] = {Kind::kRuntimeCall, Kind::kCopy, Kind::kPeerCopy, Kind::kFill, Kind::kKernel};

struct Watched {
  bool is_known;  // work on it was seen before
  bool has_work;  // in this window
  std::int64_t from_ns;
  std::int64_t to_ns;
};

// Zeroed memory, all of it, and nothing runs before or after main.
Sender sender;
Library library;
ActivityBuffers buffers;
ActivityRecords records;
Watched devices[ActivityRecords::kDevicesMax];
std::uint32_t function_names[kFunctionsMax];
std::uint32_t has_begun;
pthread_mutex_t mutex;
pthread_cond_t ends;
std::uint32_t is_ending;  // set under the mutex
std::uint32_t has_ended;
std::int32_t pid_of_thread;
std::int64_t begun_ns, window_ns, period_ns;

const Functions& cupti() { return library.functions(); }

timespec time_of(std::int64_t ns) { return {ns / 1'000'000'000, ns % 1'000'000'000}; }

void sleep_ns(std::int64_t ns) {
  const timespec time = time_of(ns);
  ::nanosleep(&time, nullptr);
}

// Until `until_ns`, or the end, or as long as `is_wanted` says so, which is asked each `poll_ns`.
template <class IsWanted>
void rest(std::int64_t until_ns, std::int64_t poll_ns, IsWanted is_wanted) {
  ::pthread_mutex_lock(&mutex);
  for (std::int64_t now_ns = observer_now_ns(); is_ending == 0 && now_ns < until_ns && is_wanted();
       now_ns = observer_now_ns()) {
    const timespec time = time_of(std::min(until_ns, now_ns + poll_ns));
    ::pthread_cond_timedwait(&ends, &mutex, &time);
  }
  ::pthread_mutex_unlock(&mutex);
}
void rest_until(std::int64_t until_ns) {
  rest(until_ns, INT64_MAX / 2, [] { return true; });
}

bool say_off(const char* what, Result result = kSuccess) {
  char text[256];
  const char* why = nullptr;
  if (result != kSuccess && cupti().get_result_string != nullptr) cupti().get_result_string(result, &why);
  if (result == kSuccess) {
    std::snprintf(text, sizeof text, "off: %s", what);
  } else {
    std::snprintf(text, sizeof text, "off: %s: %s (%d)", what, why == nullptr ? "CUPTI's error" : why, result);
  }
  sender.info("observer.kernels", text);
  return false;
}

void say_on() {
  char text[160];
  const int used =
      std::snprintf(text, sizeof text, "on: %.*s", static_cast<int>(library.name().size()), library.name().data());
  std::uint32_t version = 0;
  if (cupti().get_version != nullptr && cupti().get_version(&version) == kSuccess) {
    std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), ", version %u of its interface", version);
  }
  sender.info("observer.kernels", text);
}

// Called by CUPTI in any thread.
void give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records_max) {
  *buffer = buffers.give();
  *bytes = *buffer == nullptr ? 0 : ActivityBuffers::kBufferBytes;
  *records_max = 0;  // as many as fit
}
void take_buffer(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t bytes_used) {
  buffers.take_back(buffer, bytes_used);
}
void hear_nothing(void*, std::uint32_t, std::uint32_t, const void*) {}

std::uint32_t number_of(std::string_view text) { return sender.number_of(text); }

// "cudaLaunchKernel_v7000" → "cudaLaunchKernel", as other profilers name it.
std::string_view without_version(std::string_view name) {
  const std::size_t mark = name.rfind("_v");
  const bool is_version = mark != std::string_view::npos && mark + 2 < name.size() &&
                          name.find_first_not_of("0123456789", mark + 2) == std::string_view::npos;
  return is_version ? name.substr(0, mark) : name;
}

std::uint32_t name_of_call(std::uint32_t function) {
  if (function >= kFunctionsMax || cupti().get_callback_name == nullptr) return 0;
  std::uint32_t& number = function_names[function];
  const char* name = nullptr;
  if (number == 0 && cupti().get_callback_name(kRuntimeDomain, function, &name) == kSuccess && name != nullptr) {
    number = sender.number_of(without_version(name));
  }
  return number;
}

// The reading that took least of a few, taken between two of our clock.
ClockReading read_clocks() {
  ClockReading best{};
  std::int64_t least_ns = INT64_MAX;
  for (int tries = 0; tries < 5; ++tries) {
    const std::int64_t before_ns = observer_now_ns();
    std::uint64_t cupti_ns = 0;
    if (cupti().get_timestamp(&cupti_ns) != kSuccess) return {};
    const std::int64_t took_ns = observer_now_ns() - before_ns;
    if (took_ns >= least_ns) continue;
    least_ns = took_ns;
    best = {static_cast<std::int64_t>(cupti_ns), before_ns + took_ns / 2};
  }
  return best;
}

// CUPTI tells who came first. A debugger or a profiler of NVIDIA's counts too.
bool is_free() {
  if (!library.is_alone()) return say_off("another libcupti was loaded after ours");
  Subscriber subscriber = nullptr;
  const Result result = cupti().subscribe(&subscriber, hear_nothing, nullptr);
  if (result == kMultipleSubscribers) {
    return say_off("another tool uses CUPTI (torch.profiler, Nsight, a debugger): it goes first");
  }
  if (result != kSuccess) return say_off("CUPTI refuses", result);
  cupti().unsubscribe(subscriber);
  return true;
}

void disable_all() {
  for (const Kind kind : kKinds) cupti().disable(kind);
}

// Kernels last: what launches them is told then, too.
bool enable_all() {
  Result result = cupti().register_buffers(give_buffer, take_buffer);
  if (result != kSuccess) return say_off("CUPTI takes no buffers", result);
  for (const Kind kind : kKinds) result = cupti().enable(kind);
  if (result == kSuccess) return true;
  disable_all();
  return say_off("CUPTI does not tell of kernels", result);
}

// What is queued on the device is waited for, within a bound; then what is there has to do. `held`: buffers that never
// came back from earlier windows.
void flush(std::size_t held) {
  const std::int64_t begin_ns = observer_now_ns();
  cupti().flush_all(0);
  while (buffers.given() > held) {
    const std::int64_t limit_ns = load_word(is_ending) == 0 ? kFlushNs : kFlushAtEndNs;
    if (observer_now_ns() - begin_ns >= limit_ns) {
      cupti().flush_all(kFlushForced);
      return;
    }
    sleep_ns(kPollNs);
    cupti().flush_all(0);
  }
}

struct Window {
  std::int64_t from_ns;
  std::int64_t to_ns;
  bool is_cut;  // its end is not that of its time: what came then is not known
  std::uint64_t lost;
  ClockReading before, after;
};

// False: never again.
bool watch(Window& window) {
  std::uint32_t thread_ids = 0;
  const bool sets_ids = cupti().set_thread_id_type != nullptr && cupti().get_thread_id_type != nullptr &&
                        cupti().get_thread_id_type(&thread_ids) == kSuccess;
  buffers.empty([](const std::uint8_t*, std::size_t) {});  // late ones of the window before, whose time is over
  if (buffers.is_nearly_empty()) return say_off("CUPTI, or who took it over, keeps our buffers");
  const std::size_t held = buffers.given();
  window.before = read_clocks();
  // Set back below: it holds for all users of CUPTI in the process.
  if (sets_ids) cupti().set_thread_id_type(kThreadIdOfSystem);
  if (!enable_all()) return false;
  window.from_ns = observer_now_ns();
  rest(window.from_ns + window_ns, kPollNs, [] { return !buffers.is_nearly_empty(); });
  window.to_ns = observer_now_ns();
  window.is_cut = buffers.is_nearly_empty();
  disable_all();
  flush(held);
  window.after = read_clocks();
  if (sets_ids) cupti().set_thread_id_type(thread_ids);
  std::size_t dropped = 0;
  if (cupti().get_dropped != nullptr && cupti().get_dropped(nullptr, 0, &dropped) == kSuccess) window.lost = dropped;
  if (buffers.take_refused() > 0) window.is_cut = true;
  window.lost += buffers.given() - std::min(held, buffers.given());  // each holds one record at least
  return true;
}

void read_records(Window& window) {
  records.begin({.number_of = number_of, .name_of_call = name_of_call},
                (window.before.offset_ns() + window.after.offset_ns()) / 2);
  buffers.empty([](std::uint8_t* bytes, std::size_t bytes_used) {
    Record* record = nullptr;
    while (cupti().get_next_record(bytes, bytes_used, &record) == kSuccess && record != nullptr) records.add(*record);
  });
  records.finish();
  window.lost += records.lost();
  const bool is_set = std::llabs(window.after.offset_ns() - window.before.offset_ns()) > kClockStepNs;
  if (!is_set) return;
  // CUPTI's clock was set meanwhile: it is not known when anything ran.
  window.lost += records.count();
  records.begin({.number_of = number_of, .name_of_call = name_of_call}, 0);
}

using GetDevice = int (*)(int* device, int ordinal);
using GetPciAddress = int (*)(char* address, int bytes, int device);

// Says once which GPU of the machine it is.
void say_device(std::uint32_t ordinal) {
  int index = -1;
  if (void* driver = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY); driver != nullptr) {
    const auto get_device = reinterpret_cast<GetDevice>(::dlsym(driver, "cuDeviceGet"));
    const auto get_address = reinterpret_cast<GetPciAddress>(::dlsym(driver, "cuDeviceGetPCIBusId"));
    int device = 0;
    char address[32] = "";
    if (get_device != nullptr && get_address != nullptr && get_device(&device, static_cast<int>(ordinal)) == 0 &&
        get_address(address, sizeof address, device) == 0) {
      address[sizeof address - 1] = '\0';
      index = gpu_index_of_pci(address, "/proc/driver/nvidia/gpus");
    }
    ::dlclose(driver);
  }
  if (index < 0) index = gpu_index_of_list(ordinal, std::getenv("CUDA_VISIBLE_DEVICES"));
  if (index < 0) index = static_cast<int>(ordinal);
  char key[24];
  char label[24];
  std::snprintf(key, sizeof key, "device.%u", ordinal);
  std::snprintf(label, sizeof label, "gpu%d", index);
  sender.info(key, label);
}

// Since when and until when each device is known to have been watched: what was queued before the window is not told,
// so that it begins with the first work of the window.
void find_devices(const Window& window, std::size_t count) {
  const bool is_cut = window.is_cut || count < records.count();
  for (Watched& device : devices) device.has_work = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Activity& one = records.at(i);
    if (one.kind == SpanKind::kRuntime) continue;
    Watched& device = devices[one.device];
    if (!device.is_known) say_device(one.device);
    if (!device.has_work) device.from_ns = device.to_ns = one.start_ns;
    device.is_known = device.has_work = true;
    device.to_ns = std::max(device.to_ns, one.start_ns + one.duration_ns);
  }
  for (Watched& device : devices) {
    if (!device.is_known || is_cut) continue;
    if (!device.has_work) device.from_ns = device.to_ns = window.from_ns;
    device.has_work = true;
    device.to_ns = std::max(device.to_ns, window.to_ns);
  }
}

void send(const Window& window) {
  const std::size_t count = std::min(records.count(), kSpansMax);
  find_devices(window, count);
  const std::int64_t begin_ns = observer_now_ns();
  rest(begin_ns + kRoomNs, kPollNs, [&] { return !sender.has_room(count + ActivityRecords::kDevicesMax); });
  for (std::uint32_t i = 0; i < ActivityRecords::kDevicesMax; ++i) {
    if (!devices[i].has_work) continue;
    sender.span({.start_ns = devices[i].from_ns,
                 .duration_ns = devices[i].to_ns - devices[i].from_ns,
                 .value_a = static_cast<std::int64_t>(window.lost),
                 .value_b = -1,
                 .name = 0,
                 .thread = 0,
                 .kind = SpanKind::kDeviceWindow,
                 .is_total = false,
                 .flags = static_cast<std::uint8_t>(i),
                 .weight = 1});
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Activity& one = records.at(i);
    sender.span({.start_ns = one.start_ns,
                 .duration_ns = one.duration_ns,
                 .value_a = one.correlation,
                 .value_b = one.bytes,
                 .name = one.name,
                 .thread = one.place,
                 .kind = one.kind,
                 .is_total = false,
                 .flags = one.device,
                 .weight = 1});
    if (i % kSpansAtOnce == kSpansAtOnce - 1) sender.send_now();
  }
  if (window.lost > 0) sender.count_drop(window.lost);
  sender.send_now();
}

// One window after the other, until the end or somebody else's turn.
void watch_windows() {
  std::int64_t next_ns = begun_ns + std::min(kFirstWindowNs, period_ns);
  bool is_told = false;
  while (true) {
    rest_until(next_ns);
    if (load_word(is_ending) != 0) break;
    Window window{};
    if (!is_free() || !watch(window)) break;
    if (!is_told) say_on();
    is_told = true;
    read_records(window);
    send(window);
    next_ns = window.from_ns + std::max(period_ns, (window.from_ns - begun_ns) / kRarer);
  }
  sender.send_now();
}

void* run(void*) {
  watch_windows();
  store_word<std::uint32_t>(has_ended, 1);
  return nullptr;
}

// CUPTI may hang: then what there is has to do.
void end() {
  if (::getpid() == pid_of_thread) {
    ::pthread_mutex_lock(&mutex);
    store_word<std::uint32_t>(is_ending, 1);
    ::pthread_cond_signal(&ends);
    ::pthread_mutex_unlock(&mutex);
    const std::int64_t begin_ns = observer_now_ns();
    while (load_word(has_ended) == 0 && observer_now_ns() - begin_ns < kEndNs) sleep_ns(kNsPerMs);
    if (load_word(has_ended) == 0) {
      say_off("CUPTI did not come back before the program's end");
      sender.count_drop(std::max<std::size_t>(1, buffers.given()));
      sender.send_now();
    }
  }
  sender.finish();
}

std::int64_t ms_of(const char* variable, std::int64_t otherwise_ms) {
  const char* text = std::getenv(variable);
  const long given = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return (given >= 1 && given <= 3'600'000 ? given : otherwise_ms) * kNsPerMs;
}

// Signals of the program go to its own threads.
bool start_thread() {
  pthread_condattr_t clock;
  if (::pthread_condattr_init(&clock) != 0) return false;
  ::pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  ::pthread_cond_init(&ends, &clock);
  ::pthread_condattr_destroy(&clock);
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool is_there = ::pthread_create(&thread, &attributes, run, nullptr) == 0;
  if (is_there) ::pthread_setname_np(thread, "hotlap-kernels");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  return is_there;
}

}  // namespace
}  // namespace hotlap::cupti

// Always that all is well: the driver must go on.
int InitializeInjection() {
  using namespace hotlap;
  using namespace hotlap::cupti;
  constexpr int kGoOn = 1;
  if (!swap_word<std::uint32_t>(has_begun, 0, 1) || !sender.start("kernels")) return kGoOn;
  begun_ns = observer_now_ns();
  window_ns = ms_of("HOTLAP_KERNELS_WINDOW_MS", kWindowMsDefault);
  period_ns = ms_of("HOTLAP_KERNELS_PERIOD_MS", kPeriodMsDefault);
  pid_of_thread = ::getpid();
  // A child has no thread of ours, and no CUDA either: of its parent's nothing works there.
  ::pthread_atfork(nullptr, nullptr, [] { sender.abandon(); });
  // CUPTI first: what it has to do at the program's end then comes after what we have.
  const char* why_not = library.open();
  std::atexit(end);
  if (why_not == nullptr && !start_thread()) why_not = "no thread could be started";
  if (why_not != nullptr) {
    say_off(why_not);
    sender.send_now();
    store_word<std::uint32_t>(has_ended, 1);
  }
  return kGoOn;
}
