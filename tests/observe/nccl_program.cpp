// Stands in for NCCL: loads the plugin that NCCL_PROFILER_PLUGIN names, takes the newest table not above the version of
// its first argument, and tells it what NCCL would of an all-reduce of two channels, a send, and an all-gather whose
// kernel is never seen. The second argument: how the program ends.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "observe/nccl_abi.h"

namespace {

using namespace hotlap::nccl;

void* library;
int version;
void* communicator;

template <class Table>
const Table* table(int number) {
  return static_cast<const Table*>(::dlsym(library, ("ncclProfiler_v" + std::to_string(number)).c_str()));
}

void* start(const EventHead* event) {
  void* handle = nullptr;
  if (version == 4) {
    table<PluginV4>(4)->start(communicator, &handle, event);
  } else {
    table<Plugin>(version)->start(communicator, &handle, event);
  }
  return handle;
}

void stop(void* handle) {
  if (version == 4) {
    table<PluginV4>(4)->stop(handle);
  } else {
    table<Plugin>(version)->stop(handle);
  }
}

template <class Event>
void* start_collective(const char* function, std::uint8_t number, std::size_t count) {
  Event event{};
  event.head.type = kCollective;
  event.sequence = 5;
  event.count = count;
  if constexpr (std::is_same_v<Event, CollectiveV1>) {
    event.function = number;
    event.datatype = 7;
  } else {
    event.function = function;
    event.datatype = "ncclFloat32";
  }
  if constexpr (std::is_same_v<Event, CollectiveV4>) {
    event.channels = 2;
  } else {
    event.channels_max = 2;
  }
  return start(&event.head);
}

void* start_collective(const char* function, std::uint8_t number, std::size_t count) {
  switch (version) {
    case 1: return start_collective<CollectiveV1>(function, number, count);
    case 2: return start_collective<CollectiveV2>(function, number, count);
    case 3: return start_collective<CollectiveV3>(function, number, count);
    default: return start_collective<CollectiveV4>(function, number, count);
  }
}

void* start_send() {
  if (version == 1) {
    PointToPointV1 event{};
    event.head.type = kPointToPoint;
    event.function = 6;
    event.datatype = 0;
    event.count = 10;
    return start(&event.head);
  }
  if (version == 4) {
    PointToPointV4 event{};
    event.head.type = kPointToPoint;
    event.function = "Send";
    event.datatype = "ncclInt8";
    event.count = 10;
    event.channels = 1;
    return start(&event.head);
  }
  PointToPointV2 event{};
  event.head.type = kPointToPoint;
  event.function = "Send";
  event.datatype = "ncclInt8";
  event.count = 10;
  return start(&event.head);
}

void* start_channel(void* parent) {
  const EventHead event{.type = kKernelChannel, .parent = parent, .rank = 0};
  return version >= 3 ? start(&event) : nullptr;
}

}  // namespace

int main(int count, char** words) {
  version = count > 1 ? std::atoi(words[1]) : 4;
  const std::string how = count > 2 ? words[2] : "";
  const char* path = std::getenv("NCCL_PROFILER_PLUGIN");
  library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("no plugin\n");
    return 0;
  }
  int wanted = 0;
  const Result refused = version == 4 ? table<PluginV4>(4)->init(&communicator, &wanted, "world", 77, 1, 2, 0, nullptr)
                                      : table<Plugin>(version)->init(&communicator, &wanted);
  std::printf("wanted %d\n", refused == kSuccess ? wanted : -1);
  if (refused != kSuccess) return 0;

  void* reduce = start_collective("AllReduce", 4, 1000);
  stop(reduce);  // it is handed in; its kernel runs later, and NCCL's own thread tells of it
  std::thread([&] {
    void* first = start_channel(reduce);
    ::usleep(3'000);
    void* second = start_channel(reduce);
    stop(first);
    ::usleep(2'000);
    stop(second);
    stop(second);  // too late: it is over
  }).join();
  void* send = start_send();
  void* channel = start_channel(send);
  ::usleep(1'000);
  stop(channel);
  stop(send);
  stop(start_collective("AllGather", 2, 7));
  const EventHead unknown{.type = 1, .parent = nullptr, .rank = 0};
  stop(start(&unknown));
  if (version == 4) {
    table<PluginV4>(4)->finalize(communicator);
  } else {
    table<Plugin>(version)->finalize(communicator);
  }
  std::fflush(stdout);
  if (how == "_exit") ::_exit(4);
  return 0;
}
