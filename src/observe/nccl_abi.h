#pragma once
// What NCCL and a profiler plugin say to each other, versions 1 to 4 of its interface (NCCL 2.23 to 2.27; later ones
// take version 4 too): layouts of what NCCL hands over, as far as it is used, declared after NCCL's documentation.
#include <cstddef>
#include <cstdint>

namespace hotlap::nccl {

using Result = int;  // 0: success; anything else from init() has NCCL go on without the plugin
inline constexpr Result kSuccess = 0;
inline constexpr Result kRefused = 3;

// Kinds of events, and the mask of those that are wanted.
inline constexpr int kCollective = 1 << 1;
inline constexpr int kPointToPoint = 1 << 2;
inline constexpr int kKernelChannel = 1 << 6;  // from version 3 on: a channel of the kernel at work, on the device

struct EventHead {
  std::uint8_t type;
  void* parent;  // handle that we gave
  int rank;
};

// Of a collective.
struct CollectiveV1 {
  EventHead head;
  const char* communicator;
  std::uint64_t communicator_hash;
  std::uint64_t sequence;
  std::uint8_t function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  std::uint8_t datatype;
  std::uint32_t operation;
  std::size_t traffic_bytes;
  std::uint8_t channels_max;
};
struct CollectiveV2 {
  EventHead head;
  const char* communicator;
  std::uint64_t communicator_hash;
  std::uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* datatype;
  std::size_t traffic_bytes;
  std::uint8_t channels_max;
};
struct CollectiveV3 {
  EventHead head;
  const char* communicator;
  std::uint64_t communicator_hash;
  std::uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels_max;
};
struct CollectiveV4 {
  EventHead head;
  std::uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels;
};

// Of a send or receive.
struct PointToPointV1 {
  EventHead head;
  const char* communicator;
  std::uint64_t communicator_hash;
  std::uint8_t function;
  void* buffer;
  std::uint8_t datatype;
  std::size_t count;
  int peer;
};
struct PointToPointV2 {  // and 3
  EventHead head;
  const char* communicator;
  std::uint64_t communicator_hash;
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
};
struct PointToPointV4 {
  EventHead head;
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
static_assert(sizeof(EventHead) == 24);
static_assert(offsetof(CollectiveV1, count) == 72 && offsetof(CollectiveV1, channels_max) == 104);
static_assert(offsetof(CollectiveV2, datatype) == 88 && offsetof(CollectiveV2, channels_max) == 104);
static_assert(offsetof(CollectiveV3, channels_max) == 96 && offsetof(CollectiveV4, channels) == 80);
static_assert(offsetof(PointToPointV1, count) == 64 && offsetof(PointToPointV2, count) == 64);
static_assert(offsetof(PointToPointV4, count) == 48 && offsetof(PointToPointV4, channels) == 60);

// Version 1's numbers, in order.
inline constexpr const char* kFunctions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                             "AllReduce", "SendRecv", "Send",      "Recv"};
inline constexpr std::uint8_t kDatatypeBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

// The tables that NCCL looks for by the names ncclProfiler_v1 to ncclProfiler_v4.
struct Plugin {
  const char* name;
  Result (*init)(void** communicator, int* wanted);
  Result (*start)(void* communicator, void** handle, const EventHead* event);
  Result (*stop)(void* handle);
  Result (*record)(void* handle, int state, const void* details);
  Result (*finalize)(void* communicator);
};
struct PluginV4 {
  const char* name;
  Result (*init)(void** communicator, int* wanted, const char* name, std::uint64_t hash, int nodes, int ranks, int rank,
                 void* log);
  Result (*start)(void* communicator, void** handle, const EventHead* event);
  Result (*stop)(void* handle);
  Result (*record)(void* handle, int state, const void* details);
  Result (*finalize)(void* communicator);
};

}  // namespace hotlap::nccl
