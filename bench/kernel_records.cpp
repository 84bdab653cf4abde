// What one kernel costs libhotlap_kernels.so after its window: two records of CUPTI's (of the kernel and of the call
// that launched it) become spans in order of time. Prints ns of CPU time a kernel, the median of several rounds, and
// the floor under it: the same records, copied once. What CUPTI itself takes is not in it: that needs a GPU.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "observe/activity_records.h"
#include "observe/names.h"

namespace {

using namespace hotlap::cupti;

constexpr std::uint32_t kKernels = 3'500;  // of a window
constexpr int kRounds = 101;
constexpr std::size_t kKernelBytes = 224;  // as CUDA 13.2 has it

hotlap::NameTable names;

std::uint32_t number_of(std::string_view text) { return names.number_of(text); }
std::uint32_t name_of_call(std::uint32_t) { return names.number_of("cudaLaunchKernel"); }

double now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Pair {
  CallRecord call;
  alignas(8) unsigned char kernel[kKernelBytes];
};

std::vector<Pair> window_of_records() {
  static const std::vector<std::string> kTexts = [] {
    std::vector<std::string> texts;
    for (int i = 0; i < 60; ++i)
      texts.push_back("_ZN2at6native18elementwise_kernel" + std::string("ILi128ELi") + std::to_string(i) + "EEEvi");
    return texts;
  }();
  std::vector<Pair> pairs(kKernels);
  for (std::uint32_t i = 0; i < kKernels; ++i) {
    CallRecord& call = pairs[i].call;
    call.head.kind = Kind::kRuntimeCall;
    call.start_ns = 1'000 + std::uint64_t{i} * 10'000;
    call.end_ns = call.start_ns + 4'000;
    call.correlation = i + 1;
    KernelRecord kernel{};
    kernel.head.kind = Kind::kKernel;
    kernel.start_ns = call.end_ns + 100'000;
    kernel.end_ns = kernel.start_ns + 8'000;
    kernel.correlation = i + 1;
    kernel.name = kTexts[i % kTexts.size()].c_str();
    std::memcpy(pairs[i].kernel, &kernel, sizeof kernel);
  }
  return pairs;
}

template <class Work>
double median_ns_a_kernel(Work work) {
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) {
    const double begin_ns = now_ns();
    work();
    rounds.push_back((now_ns() - begin_ns) / kKernels);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace

int main() {
  const std::vector<Pair> pairs = window_of_records();
  std::vector<Pair> copy(pairs.size());
  const auto records = std::make_unique<ActivityRecords>();
  const double floor_ns = median_ns_a_kernel([&] { std::copy(pairs.begin(), pairs.end(), copy.begin()); });
  const double spans_ns = median_ns_a_kernel([&] {
    records->begin({.number_of = number_of, .name_of_call = name_of_call}, 0);
    for (const Pair& pair : pairs) {
      records->add(pair.call.head);
      records->add(*reinterpret_cast<const Record*>(pair.kernel));
    }
    records->finish();
  });
  if (records->count() != 2 * kKernels) return 1;
  std::printf("records to spans %8.1f ns a kernel\n", spans_ns);
  std::printf("copied once      %8.1f ns a kernel: %.1f times\n", floor_ns, spans_ns / floor_ns);
  return 0;
}
