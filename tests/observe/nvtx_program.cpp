// A program that uses NVTX in every way that we claim to understand. What it does is its first argument; it prints what
// the calls gave back, so that a test sees both ends.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "observe/nvtx_host.h"

namespace {

using namespace hotlap::test;
namespace nvtx = hotlap::nvtx;

void sleep_ms(unsigned int ms) { ::usleep(ms * 1000); }

void all_kinds() {
  std::printf("injected %d\n", nvtx_host.is_injected() ? 1 : 0);
  const int outer = range_push("outer");
  const int inner = range_push(L"in\u00e9r");
  sleep_ms(5);
  const int ended = range_pop();
  const int last = range_pop();
  std::printf("depths %d %d %d %d %d\n", outer, inner, ended, last, range_pop());
  mark("a mark");

  const nvtx::Domain domain = domain_create("my lib");
  std::printf("same domain %d\n", domain_create("my lib") == domain ? 1 : 0);
  name_category(domain, 7, "io");
  nvtx::EventAttributes event =
      event_of(nvtx::kMessageRegistered, {.registered = register_string(domain, "read \"x\"")});
  event.category = 7;
  event.payload_type = nvtx::kPayloadInt64;
  event.payload.int64 = 4096;
  domain_push(domain, &event);
  range_push("between");  // domains have orders of their own
  sleep_ms(2);
  std::printf("domain pop %d\n", domain_pop(domain));
  range_pop();
  nvtx::EventAttributes nameless = event_of(nvtx::kMessageNone, {.ascii = nullptr});
  range_push(&nameless);
  range_pop();
  nvtx::EventAttributes foreign = event;
  foreign.size = 8;  // of some other version: what it says is not looked at
  range_push(&foreign);
  range_pop();

  nvtx::RangeId across = 0;
  std::thread([&] {
    name_thread(static_cast<std::uint32_t>(::gettid()), "starter");
    across = range_start("across threads");
  }).join();
  range_end(across);
  range_end(across);  // ended already
  range_end(12345);   // never begun
}

void many_threads() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      const std::string name = "worker " + std::to_string(t);
      for (int i = 0; i < 2000; ++i) {
        range_push(name.c_str());
        range_pop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A child that goes on, one that is replaced, and the parent.
void forks() {
  range_push("before the fork");
  range_pop();
  if (const pid_t child = ::fork(); child == 0) {
    range_push("in the child");
    sleep_ms(2);
    range_pop();
    std::exit(0);
  } else {
    ::waitpid(child, nullptr, 0);
  }
  range_push("in the parent");
  range_pop();
}

void exec_again(const char* program) {
  range_push("before exec");
  range_pop();
  sleep_ms(700);  // the recorder looks in between
  range_push("late before exec");
  range_pop();
  ::execl(program, program, "one", nullptr);
}

void after_main() {
  std::atexit([] {
    range_push("at exit");
    range_pop();
  });
  range_push("in main");
  range_pop();
  std::atexit([] {  // after ours, which the first call above put before
    range_push("at exit, first");
    range_pop();
  });
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "all") all_kinds();
  if (what == "threads") many_threads();
  if (what == "forks") forks();
  if (what == "exec") exec_again(words[0]);
  if (what == "exit") after_main();
  if (what == "one" || what == "killed" || what == "_exit") {
    range_push("one");
    range_pop();
    std::fflush(stdout);
    if (what == "killed") ::raise(SIGKILL);
    if (what == "_exit") ::_exit(3);
  }
  return 0;
}
