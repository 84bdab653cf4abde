// libhotlap_nccl.so: collectives and point-to-point operations as NCCL tells them to a profiler plugin. NCCL loads it
// because NCCL_PROFILER_PLUGIN names it, when the first communicator is made.
//
// NCCL says when an operation is handed to it and, from version 3 of the interface on, when each channel of its kernel
// begins and ends to work. The operation took from the first channel's begin to the last one's end, as seen by NCCL's
// thread that watches the device. Where channels are not told, how long it took is not known.
//
// Everything here runs in the job's threads, is called through C, and may not fail: it sees less instead.
#include <pthread.h>
#include <string.h>

#include <cstdlib>
#include <iterator>

#include "observe/nccl_abi.h"
#include "observe/sender.h"
#include "observe/utf8_text.h"

namespace hotlap::nccl {
namespace {

constexpr std::uint32_t kOperationsMax = 2048;  // that are on their way at a time, of all communicators
constexpr std::uintptr_t kIsChannel = std::uintptr_t{1} << 63;

// An operation from its start to its last channel's end. Channels have no place of their own: their handle is that of
// their operation with a mark.
struct Operation {
  std::uint64_t lap;  // even: free; odd: in use; handles carry it, so that a late channel of an earlier one is told
  std::uint32_t is_handed_in;
  std::uint32_t channels_begun;
  std::uint32_t channels_ended;
  std::uint32_t channels;  // that there will be; 0: they are not told
  std::uint32_t name;
  std::uint32_t thread;
  std::int64_t start_ns;
  std::int64_t first_ns;  // of a channel; 0: none so far
  std::int64_t last_ns;
  std::int64_t bytes;
  std::int64_t sequence;
};

Sender sender;
Operation operations[kOperationsMax];
std::uint32_t next_operation;
std::uint32_t has_handlers;
char communicator_of_ours;  // the same for all: what is kept of an operation is in its own place

void* handle_of(std::uint32_t index, std::uint64_t lap) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(lap) * kOperationsMax + index);
}

// Null: an operation that is over.
Operation* operation_of(std::uintptr_t handle) {
  Operation& operation = operations[handle % kOperationsMax];
  const std::uint64_t lap = handle / kOperationsMax;
  return lap % 2 == 1 && load_word(operation.lap) == lap ? &operation : nullptr;
}

// Tells what is known and frees the place, once.
void finish(Operation& operation, std::uint64_t lap) {
  const std::int64_t first_ns = load_word(operation.first_ns);
  const std::int64_t last_ns = load_word(operation.last_ns);
  const ObservedSpan span{.start_ns = first_ns != 0 ? first_ns : operation.start_ns,
                          .duration_ns = first_ns != 0 && last_ns >= first_ns ? last_ns - first_ns : -1,
                          .value_a = operation.bytes,
                          .value_b = operation.sequence,
                          .name = operation.name,
                          .thread = operation.thread,
                          .kind = SpanKind::kUser,
                          .is_total = false,
                          .flags = 0,
                          .weight = 1};
  if (swap_word(operation.lap, lap, lap + 1)) sender.span(span);
}

void finish_if_over(Operation& operation, std::uint64_t lap) {
  if (load_word(operation.is_handed_in) == 0) return;
  const std::uint32_t ended = load_word(operation.channels_ended);
  if (ended >= operation.channels && ended == load_word(operation.channels_begun)) finish(operation, lap);
}

void* begin(std::string_view function, std::int64_t bytes, std::int64_t sequence, std::uint32_t channels) {
  const std::uint32_t index = add_word<std::uint32_t>(next_operation, 1) % kOperationsMax;
  Operation& operation = operations[index];
  std::uint64_t lap = load_word(operation.lap);
  if (lap % 2 == 1) {  // so many later ones have begun: it will not be told any more
    finish(operation, lap);
    lap = load_word(operation.lap);
  }
  if (lap % 2 == 1) return nullptr;
  Utf8Text name;
  operation.name = sender.number_of(name.add("nccl:").add(function).view());
  operation.thread = sender.thread();
  operation.start_ns = observer_now_ns();
  operation.first_ns = operation.last_ns = 0;
  operation.is_handed_in = operation.channels_begun = operation.channels_ended = 0;
  operation.channels = channels;
  operation.bytes = bytes;
  operation.sequence = sequence;
  return swap_word(operation.lap, lap, lap + 1) ? handle_of(index, lap + 1) : nullptr;
}

void* begin_channel(void* parent) {
  const auto handle = reinterpret_cast<std::uintptr_t>(parent);
  Operation* operation = operation_of(handle);
  if (operation == nullptr) return nullptr;
  swap_word<std::int64_t>(operation->first_ns, 0, observer_now_ns());
  add_word<std::uint32_t>(operation->channels_begun, 1);
  return reinterpret_cast<void*>(handle | kIsChannel);
}

std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view("?") : std::string_view(text, ::strnlen(text, 64));
}
std::string_view function_of(std::uint8_t number) {
  return number < std::size(kFunctions) ? std::string_view(kFunctions[number]) : std::string_view("?");
}

// -1: not known.
std::int64_t bytes_of(std::size_t count, std::uint8_t datatype) {
  if (datatype >= std::size(kDatatypeBytes) || count > std::size_t{1} << 56) return -1;
  return static_cast<std::int64_t>(count * kDatatypeBytes[datatype]);
}

// "ncclFloat32": the bits are at the end; "ncclFloat8e4m3" and the like have 8.
std::int64_t bytes_of(std::size_t count, const char* datatype) {
  const std::string_view text = text_of(datatype);
  if (count > std::size_t{1} << 56) return -1;
  std::size_t size = 0;
  if (text.find("8e") != std::string_view::npos || (text.ends_with("8") && !text.ends_with("128"))) size = 1;
  if (text.ends_with("16")) size = 2;
  if (text.ends_with("32")) size = 4;
  if (text.ends_with("64")) size = 8;
  return size == 0 ? -1 : static_cast<std::int64_t>(count * size);
}

template <class Event>
const Event& as(const EventHead* head) {
  return *reinterpret_cast<const Event*>(head);
}

Result start_v1(void*, void** handle, const EventHead* head) {
  *handle = nullptr;
  if (!sender.is_on()) return kSuccess;
  if (head->type == kCollective) {
    const auto& event = as<CollectiveV1>(head);
    *handle = begin(function_of(event.function), bytes_of(event.count, event.datatype),
                    static_cast<std::int64_t>(event.sequence), 0);
  } else if (head->type == kPointToPoint) {
    const auto& event = as<PointToPointV1>(head);
    *handle = begin(function_of(event.function), bytes_of(event.count, event.datatype), -1, 0);
  }
  return kSuccess;
}

// Versions 2 and 3 differ in what lies behind the datatype.
template <class Collective, class PointToPoint>
void* begin_named(const EventHead* head, std::uint32_t collective_channels, std::uint32_t send_channels) {
  if (head->type == kCollective) {
    const auto& event = as<Collective>(head);
    return begin(text_of(event.function), bytes_of(event.count, event.datatype),
                 static_cast<std::int64_t>(event.sequence), collective_channels);
  }
  if (head->type == kPointToPoint) {
    const auto& event = as<PointToPoint>(head);
    return begin(text_of(event.function), bytes_of(event.count, event.datatype), -1, send_channels);
  }
  return head->type == kKernelChannel ? begin_channel(head->parent) : nullptr;
}

Result start_v2(void*, void** handle, const EventHead* head) {
  *handle = sender.is_on() ? begin_named<CollectiveV2, PointToPointV2>(head, 0, 0) : nullptr;
  return kSuccess;
}

Result start_v3(void*, void** handle, const EventHead* head) {
  const std::uint32_t channels = head->type == kCollective ? as<CollectiveV3>(head).channels_max : 1;
  *handle = sender.is_on() ? begin_named<CollectiveV3, PointToPointV2>(head, channels, 1) : nullptr;
  return kSuccess;
}

Result start_v4(void*, void** handle, const EventHead* head) {
  const std::uint32_t channels = head->type == kCollective     ? as<CollectiveV4>(head).channels
                                 : head->type == kPointToPoint ? as<PointToPointV4>(head).channels
                                                               : 0;
  *handle = sender.is_on() ? begin_named<CollectiveV4, PointToPointV4>(head, channels, channels) : nullptr;
  return kSuccess;
}

Result stop(void* handle) {
  const auto marked = reinterpret_cast<std::uintptr_t>(handle);
  Operation* operation = operation_of(marked & ~kIsChannel);
  if (handle == nullptr || operation == nullptr) return kSuccess;
  const std::uint64_t lap = (marked & ~kIsChannel) / kOperationsMax;
  if ((marked & kIsChannel) != 0) {
    store_word(operation->last_ns, observer_now_ns());
    add_word<std::uint32_t>(operation->channels_ended, 1);
  } else {
    store_word<std::uint32_t>(operation->is_handed_in, 1);
  }
  finish_if_over(*operation, lap);
  return kSuccess;
}

Result record(void*, int, const void*) { return kSuccess; }

void finish_all() {
  for (Operation& operation : operations) {
    const std::uint64_t lap = load_word(operation.lap);
    if (lap % 2 == 1) finish(operation, lap);
  }
}

// Of one communicator; the others' operations may still be on their way.
Result finalize(void*) { return kSuccess; }

Result begin_recording(void** communicator, int* wanted, int kinds) {
  if (!sender.start("nccl")) return kRefused;
  if (swap_word<std::uint32_t>(has_handlers, 0, 1)) {
    ::pthread_atfork(nullptr, nullptr, [] {
      sender.after_fork();
      for (Operation& operation : operations) operation.lap += operation.lap % 2;  // they are the parent's
    });
    std::atexit([] {
      finish_all();
      sender.finish();
    });
    sender.info("observer.nccl", "on");
  }
  *communicator = &communicator_of_ours;
  *wanted = kinds;
  return kSuccess;
}

Result init_host(void** communicator, int* wanted) {
  return begin_recording(communicator, wanted, kCollective | kPointToPoint);
}
Result init_v3(void** communicator, int* wanted) {
  return begin_recording(communicator, wanted, kCollective | kPointToPoint | kKernelChannel);
}
Result init_v4(void** communicator, int* wanted, const char*, std::uint64_t, int, int, int, void*) {
  return init_v3(communicator, wanted);
}

}  // namespace
}  // namespace hotlap::nccl

extern "C" {
extern const hotlap::nccl::Plugin ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern const hotlap::nccl::PluginV4 ncclProfiler_v4;
#pragma GCC visibility push(default)
constinit const hotlap::nccl::Plugin ncclProfiler_v1{
    "hotlap",           hotlap::nccl::init_host, hotlap::nccl::start_v1,
    hotlap::nccl::stop, hotlap::nccl::record,    hotlap::nccl::finalize};
constinit const hotlap::nccl::Plugin ncclProfiler_v2{
    "hotlap",           hotlap::nccl::init_host, hotlap::nccl::start_v2,
    hotlap::nccl::stop, hotlap::nccl::record,    hotlap::nccl::finalize};
constinit const hotlap::nccl::Plugin ncclProfiler_v3{"hotlap",           hotlap::nccl::init_v3, hotlap::nccl::start_v3,
                                                     hotlap::nccl::stop, hotlap::nccl::record,  hotlap::nccl::finalize};
constinit const hotlap::nccl::PluginV4 ncclProfiler_v4{
    "hotlap",           hotlap::nccl::init_v4, hotlap::nccl::start_v4,
    hotlap::nccl::stop, hotlap::nccl::record,  hotlap::nccl::finalize};
#pragma GCC visibility pop
}
