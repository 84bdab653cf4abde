// Stands in for a program that uses CUDA, with its driver and runtime: loads the library that CUDA_INJECTION64_PATH
// names, as the driver does, and then "runs" kernels and copies on a stream, which the CUPTI in its place is told of.
//
// usage: kernels_program WINDOWS [WORD…]: goes on until so many windows have been closed, or ten seconds. Words: short
// (half a second, where no window is expected), flood (launches as fast as it can), other (somebody else subscribes
// after the first window), fork (a child that launches, too), late (loads CUPTI only after the injection: nobody has it
// before), _exit. Prints how many kernels CUPTI was told of.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "observe/fake_cupti.h"

namespace {

using namespace hotlap::cupti;
using Clock = std::chrono::steady_clock;

void* cupti;
std::uint32_t correlation;
std::uint64_t stream_ends_ns;
bool is_flood;

template <class F>
F* of_cupti(const char* name) {
  return reinterpret_cast<F*>(::dlsym(cupti, name));
}
std::uint64_t now_ns() { return of_cupti<decltype(fake_cupti_now_ns)>("fake_cupti_now_ns")(); }

void call(std::uint32_t function, std::uint64_t start_ns, std::uint64_t end_ns) {
  const CallRecord record{.head = {Kind::kRuntimeCall},
                          .function = function,
                          .start_ns = start_ns,
                          .end_ns = end_ns,
                          .process = 0,
                          .thread = of_cupti<decltype(fake_cupti_thread)>("fake_cupti_thread")(),
                          .correlation = correlation,
                          .result = 0};
  of_cupti<decltype(fake_cupti_call)>("fake_cupti_call")(&record);
}

// On the stream, after what is queued there.
std::pair<std::uint64_t, std::uint64_t> queue(std::uint32_t function, std::uint64_t duration_ns) {
  ++correlation;
  const std::uint64_t start_ns = now_ns();
  const std::uint64_t begin_ns = std::max(start_ns + 5'000, stream_ends_ns);
  stream_ends_ns = begin_ns + duration_ns;
  call(function, start_ns, start_ns + 3'000);
  return {begin_ns, stream_ends_ns};
}

void launch(const char* name, std::uint64_t duration_ns, std::uint32_t stream) {
  const auto [begin_ns, end_ns] = queue(kFakeLaunch, duration_ns);
  KernelRecord record{};
  record.head.kind = Kind::kKernel;
  record.start_ns = begin_ns;
  record.end_ns = end_ns;
  record.stream = stream;
  record.correlation = correlation;
  record.name = name;
  of_cupti<decltype(fake_cupti_kernel)>("fake_cupti_kernel")(&record);
}

void copy_in(std::uint64_t bytes) {
  const auto [begin_ns, end_ns] = queue(kFakeCopy, 20'000);
  CopyRecord record{};
  record.head.kind = Kind::kCopy;
  record.direction = 1;
  record.from_memory = 1;
  record.to_memory = 3;
  record.bytes = bytes;
  record.start_ns = begin_ns;
  record.end_ns = end_ns;
  record.stream = 7;
  record.correlation = correlation;
  of_cupti<decltype(fake_cupti_copy)>("fake_cupti_copy")(&record);
}

void wait() {
  ++correlation;
  const std::uint64_t start_ns = now_ns();
  while (!is_flood && now_ns() < stream_ends_ns) ::usleep(50);
  call(kFakeWait, start_ns, now_ns());
}

void step() {
  copy_in(1 << 20);
  launch("_Z10scale_rowsPfi", 100'000, 7);
  launch("sgemm_128x128", 200'000, 7);
  launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 50'000, 20);
  if (is_flood) stream_ends_ns = 0;
  wait();
  if (!is_flood) ::usleep(300);
}

void work(int windows, std::chrono::milliseconds limit, bool gives_way) {
  const auto begin = Clock::now();
  while (of_cupti<int()>("fake_cupti_windows")() < windows && Clock::now() - begin < limit) {
    step();
    if (gives_way && of_cupti<int()>("fake_cupti_windows")() >= 1) {
      of_cupti<void()>("fake_cupti_take_subscription")();
    }
  }
}

void inject() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_LAZY);
  if (library == nullptr) {
    std::printf("not injected\n");
    return;
  }
  const auto initialise = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  std::printf("injected %d\n", initialise == nullptr ? -1 : initialise());
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words + 1, words + count);
  const auto has = [&](const char* word) { return std::ranges::find(given, word) != given.end(); };
  const int windows = given.empty() ? 1 : std::atoi(given[0].c_str());
  is_flood = has("flood");
  if (has("late")) inject();
  cupti = ::dlopen("libcupti.so.12", RTLD_LAZY);
  if (cupti == nullptr) std::printf("no CUPTI\n");
  if (!has("late")) inject();
  std::fflush(stdout);
  if (has("fork")) {
    if (const pid_t child = ::fork(); child == 0) {
      if (cupti != nullptr) step();
      std::exit(0);
    } else {
      int status = -1;
      ::waitpid(child, &status, 0);
      std::printf("child %d\n", status);
    }
  }
  const std::chrono::milliseconds limit(has("short") ? 500 : 10'000);
  if (cupti == nullptr) {
    std::this_thread::sleep_for(limit);
  } else {
    work(windows, limit, has("other"));
    std::printf("kernels %llu\n", static_cast<unsigned long long>(of_cupti<std::uint64_t()>("fake_cupti_written")()));
  }
  std::fflush(stdout);
  if (has("_exit")) ::_exit(4);
  return 0;
}
