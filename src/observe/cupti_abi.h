#pragma once
// What CUPTI, NVIDIA's library for profilers, and a client of its activity interface say to each other: functions and
// records as far as they are used, declared after CUPTI's documentation. The places of these fields have been the same
// from CUDA 11.0 to 13.2 whatever was added behind them (CUpti_ActivityKernel4 to 11, Memcpy to 6, Memset to 4);
// tests/observe/cupti_layouts.cpp compares them with NVIDIA's headers where those are installed.
#include <cstddef>
#include <cstdint>

namespace hotlap::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kMultipleSubscribers = 39;

enum class Kind : std::uint32_t {
  kCopy = 1,
  kFill = 2,
  kRuntimeCall = 5,
  kKernel = 10,  // as it ran, beside others
  kPeerCopy = 22,
};
inline constexpr std::uint32_t kRuntimeDomain = 2;
inline constexpr std::uint32_t kFlushForced = 1;
inline constexpr std::uint32_t kThreadIdOfSystem = 1;
inline constexpr std::size_t kBufferAlignment = 8;

struct Record {
  Kind kind;
};

// Times are of cuptiGetTimestamp(); 0: not known.
struct KernelRecord {
  Record head;
  std::uint32_t unused_limits[3];
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint64_t unused_completed_ns;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t unused_sizes[10];
  std::uint32_t correlation;
  std::uint64_t unused_grid;
  const char* name;  // mangled
};

struct CopyRecord {
  Record head;
  std::uint8_t direction;
  std::uint8_t from_memory;
  std::uint8_t to_memory;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};

// From the memory of one device to that of another.
struct PeerCopyRecord {
  Record head;
  std::uint8_t direction;
  std::uint8_t from_memory;
  std::uint8_t to_memory;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t unused_peers[4];
  std::uint32_t correlation;
};

struct FillRecord {
  Record head;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};

struct CallRecord {
  Record head;
  std::uint32_t function;  // its number, whose name cuptiGetCallbackName() gives
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t correlation;
  std::uint32_t result;
};

static_assert(offsetof(KernelRecord, start_ns) == 16 && offsetof(KernelRecord, device) == 40);
static_assert(offsetof(KernelRecord, correlation) == 92 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(CopyRecord, bytes) == 8 && offsetof(CopyRecord, correlation) == 44);
static_assert(offsetof(PeerCopyRecord, device) == 32 && offsetof(PeerCopyRecord, correlation) == 60);
static_assert(offsetof(FillRecord, bytes) == 8 && offsetof(FillRecord, correlation) == 44);
static_assert(offsetof(CallRecord, start_ns) == 8 && offsetof(CallRecord, correlation) == 32);

using Subscriber = void*;
using Callback = void (*)(void*, std::uint32_t domain, std::uint32_t function, const void*);
using GiveBuffer = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records_max);
using TakeBuffer = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                            std::size_t bytes_used);

// Null: this version has it not.
struct Functions {
  Result (*get_version)(std::uint32_t*);
  Result (*get_result_string)(Result, const char**);
  Result (*get_timestamp)(std::uint64_t*);
  Result (*subscribe)(Subscriber*, Callback, void*);
  Result (*unsubscribe)(Subscriber);
  Result (*register_buffers)(GiveBuffer, TakeBuffer);
  Result (*enable)(Kind);
  Result (*disable)(Kind);
  Result (*flush_all)(std::uint32_t flags);
  Result (*get_next_record)(std::uint8_t*, std::size_t, Record**);
  Result (*get_dropped)(void* context, std::uint32_t stream, std::size_t*);
  Result (*get_callback_name)(std::uint32_t domain, std::uint32_t function, const char**);
  Result (*set_thread_id_type)(std::uint32_t);
  Result (*get_thread_id_type)(std::uint32_t*);
};

}  // namespace hotlap::cupti
