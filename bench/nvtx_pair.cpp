// What a push and a pop of NVTX cost in the job: without a tool, with libhotlap_nvtx.so that has nothing to send to (no
// ring folder), and recorded. Prints ns of CPU time a pair, the median of several rounds.
//
// usage: nvtx_pair LIBRARY [THREADS]; LIBRARY: build/release/lib/hotlap/libhotlap_nvtx.so. The parts run in children,
// since NVTX looks for its tool once. Nobody reads the ring: it is made large enough by leaving short spans out.
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "observe/nvtx_host.h"

namespace {

using namespace hotlap::test;

constexpr int kRounds = 15;
constexpr int kPairs = 200'000;

double now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double round_ns() {
  const double begin_ns = now_ns();
  for (int i = 0; i < kPairs; ++i) {
    range_push("a name of usual length");
    range_pop();
  }
  return (now_ns() - begin_ns) / kPairs;
}

void measure(const char* what, int threads) {
  range_push("first");
  range_pop();
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) {
    std::vector<double> each(static_cast<std::size_t>(threads));
    std::vector<std::jthread> running;
    for (double& one : each) running.emplace_back([&one] { one = round_ns(); });
    running.clear();
    rounds.insert(rounds.end(), each.begin(), each.end());
  }
  std::sort(rounds.begin(), rounds.end());
  std::printf("%-24s %7.1f ns a pair (%.1f to %.1f)\n", what, rounds[rounds.size() / 2], rounds.front(), rounds.back());
  std::fflush(stdout);
}

void in_child(const char* what, int threads) {
  if (const pid_t child = ::fork(); child == 0) {
    measure(what, threads);
    ::exit(0);
  } else {
    ::waitpid(child, nullptr, 0);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: nvtx_pair LIBRARY [THREADS]\n");
    return 2;
  }
  const int threads = count > 2 ? std::max(1, std::atoi(words[2])) : 1;
  ::unsetenv("NVTX_INJECTION64_PATH");
  in_child("no tool", threads);
  ::setenv("NVTX_INJECTION64_PATH", words[1], 1);
  ::unsetenv("HOTLAP_OBSERVER_RING_DIR");
  in_child("tool, not recorded", threads);
  std::string folder = "/dev/shm/nvtx-pair-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  ::setenv("HOTLAP_OBSERVER_RING_DIR", folder.c_str(), 1);
  in_child("recorded", threads);
  return std::system(("rm -r " + folder).c_str());
}
