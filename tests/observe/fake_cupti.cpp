// Stands in for NVIDIA's libcupti, as far as libhotlap_kernels.so asks: one subscriber, kinds that are switched on and
// off, buffers that are asked for and given back, records of the sizes of several versions. FAKE_CUPTI holds words that
// say what goes wrong. The program beside it (kernels_program.cpp) is the driver and the runtime: it says what runs.
#include "observe/fake_cupti.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace hotlap::cupti;

std::mutex mutex;
bool is_enabled[32];
bool has_subscriber;
int subscribed;
int windows;
GiveBuffer give;
TakeBuffer take;
std::uint64_t written;
std::uint64_t dropped;
std::int64_t clock_step_ns;
std::uint32_t thread_id_type;

struct Open {
  std::uint8_t* bytes;
  std::size_t size;
  std::size_t used;
  std::uint64_t ends_ns;  // of the last of its records
};
std::vector<Open> filled;  // the last is being filled

bool says(const char* word) {
  const char* words = std::getenv("FAKE_CUPTI");
  return words != nullptr && (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

std::size_t kernel_bytes() {
  const char* text = std::getenv("FAKE_CUPTI_KERNEL_BYTES");
  return text == nullptr ? 208 : static_cast<std::size_t>(std::atoi(text));
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + clock_step_ns);
}

std::size_t bytes_of(const Record& record) {
  switch (record.kind) {
    case Kind::kKernel: return kernel_bytes();
    case Kind::kPeerCopy: return 96;
    case Kind::kCopy: return 88;
    case Kind::kFill: return 80;
    default: return 40;
  }
}

// What has not ended has no end.
void leave_open(Open& buffer) {
  for (std::size_t at = 0; at < buffer.used;) {
    auto* record = reinterpret_cast<Record*>(buffer.bytes + at);
    if (record->kind == Kind::kKernel) reinterpret_cast<KernelRecord*>(record)->end_ns = 0;
    at += bytes_of(*record);
  }
}

// Its lock is held: CUPTI too calls out with locks of its own.
[[maybe_unused]] void give_back(bool is_forced) {
  std::vector<Open> kept;
  for (Open& buffer : filled) {
    const bool is_complete = buffer.ends_ns <= now_ns() && !says("slow");
    if (!is_complete && !is_forced) {
      kept.push_back(buffer);
      continue;
    }
    if (!is_complete) leave_open(buffer);
    take(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
  }
  filled = kept;
}

// Null: no more buffers are given.
Open* with_room(std::size_t bytes) {
  if (!filled.empty() && filled.back().used + bytes <= filled.back().size) return &filled.back();
  Open fresh{};
  std::size_t records_max = 0;
  give(&fresh.bytes, &fresh.size, &records_max);
  if (fresh.bytes == nullptr) return nullptr;
  std::memset(fresh.bytes, 0, fresh.size);
  return &filled.emplace_back(fresh);
}

template <class T>
void write(const T& record, std::uint64_t end_ns) {
  const std::lock_guard lock(mutex);
  if (!is_enabled[static_cast<int>(record.head.kind)] || give == nullptr) return;
  const std::size_t bytes = bytes_of(record.head);
  Open* const buffer = with_room(bytes);
  if (buffer == nullptr) {
    ++dropped;
    return;
  }
  std::memcpy(buffer->bytes + buffer->used, &record, std::min(sizeof record, bytes));
  buffer->used += bytes;
  buffer->ends_ns = std::max(buffer->ends_ns, end_ns);
  if (record.head.kind == Kind::kKernel) ++written;
}

}  // namespace

template <auto Function>
using TypeOf = std::remove_pointer_t<std::remove_reference_t<decltype(std::declval<Functions>().*Function)>>;

#pragma GCC visibility push(default)
extern "C" {

TypeOf<&Functions::get_version> cuptiGetVersion;
TypeOf<&Functions::get_result_string> cuptiGetResultString;
TypeOf<&Functions::get_timestamp> cuptiGetTimestamp;
TypeOf<&Functions::subscribe> cuptiSubscribe;
TypeOf<&Functions::unsubscribe> cuptiUnsubscribe;
TypeOf<&Functions::register_buffers> cuptiActivityRegisterCallbacks;
TypeOf<&Functions::enable> cuptiActivityEnable;
TypeOf<&Functions::disable> cuptiActivityDisable;
TypeOf<&Functions::flush_all> cuptiActivityFlushAll;
TypeOf<&Functions::get_next_record> cuptiActivityGetNextRecord;
TypeOf<&Functions::get_dropped> cuptiActivityGetNumDroppedRecords;
TypeOf<&Functions::get_callback_name> cuptiGetCallbackName;
TypeOf<&Functions::set_thread_id_type> cuptiSetThreadIdType;
TypeOf<&Functions::get_thread_id_type> cuptiGetThreadIdType;

std::uint64_t fake_cupti_now_ns() { return now_ns(); }
void fake_cupti_kernel(const KernelRecord* record) { write(*record, record->end_ns); }
void fake_cupti_copy(const CopyRecord* record) { write(*record, record->end_ns); }
void fake_cupti_fill(const FillRecord* record) { write(*record, record->end_ns); }
void fake_cupti_call(const CallRecord* record) { write(*record, record->end_ns); }
std::uint32_t fake_cupti_thread() {
  return thread_id_type == kThreadIdOfSystem ? static_cast<std::uint32_t>(::gettid()) : 0;
}
int fake_cupti_windows() {
  const std::lock_guard lock(mutex);
  return windows;
}
std::uint64_t fake_cupti_written() {
  const std::lock_guard lock(mutex);
  return written;
}
void fake_cupti_take_subscription() {
  const std::lock_guard lock(mutex);
  has_subscriber = true;
}

Result cuptiGetTimestamp(std::uint64_t* time_ns) {
  *time_ns = now_ns();
  return kSuccess;
}
Result cuptiSubscribe(Subscriber* subscriber, Callback, void*) {
  const std::lock_guard lock(mutex);
  if (says("other") || has_subscriber) return kMultipleSubscribers;
  if (says("no_driver")) return 999;
  has_subscriber = true;
  *subscriber = &subscribed;
  return kSuccess;
}
Result cuptiUnsubscribe(Subscriber) {
  const std::lock_guard lock(mutex);
  has_subscriber = false;
  return kSuccess;
}
Result cuptiActivityRegisterCallbacks(GiveBuffer give_buffer, TakeBuffer take_buffer) {
  const std::lock_guard lock(mutex);
  give = give_buffer;
  take = take_buffer;
  return kSuccess;
}
Result cuptiActivityEnable(Kind kind) {
  const std::lock_guard lock(mutex);
  if (kind == Kind::kKernel && says("unprivileged")) return 35;
  if (kind == Kind::kPeerCopy) return 21;  // a version that has it not
  is_enabled[static_cast<int>(kind)] = true;
  return kSuccess;
}
Result cuptiActivityDisable(Kind kind) {
  const std::lock_guard lock(mutex);
  if (kind == Kind::kKernel && is_enabled[static_cast<int>(kind)]) {
    ++windows;
    if (says("step")) clock_step_ns += 3'600'000'000'000;
  }
  is_enabled[static_cast<int>(kind)] = false;
  return kSuccess;
}
Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t used, Record** record) {
  std::size_t at = 0;
  if (*record != nullptr)
    at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer) + bytes_of(**record);
  if (at >= used) return 12;
  *record = reinterpret_cast<Record*>(buffer + at);
  return kSuccess;
}
#ifndef FAKE_CUPTI_IS_POOR
Result cuptiActivityFlushAll(std::uint32_t flags) {
  while (says("hang")) ::usleep(1000);
  const std::lock_guard lock(mutex);
  give_back(flags == kFlushForced);
  return kSuccess;
}
#endif
#ifndef FAKE_CUPTI_IS_OLD
Result cuptiGetVersion(std::uint32_t* version) {
  *version = 26;
  return kSuccess;
}
Result cuptiGetResultString(Result result, const char** text) {
  *text = result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_UNKNOWN";
  return kSuccess;
}
Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* count) {
  const std::lock_guard lock(mutex);
  *count = dropped + (says("drops") ? 7 : 0);
  dropped = 0;
  return kSuccess;
}
Result cuptiGetCallbackName(std::uint32_t, std::uint32_t function, const char** name) {
  *name = function == kFakeLaunch ? "cudaLaunchKernel_v7000"
          : function == kFakeCopy ? "cudaMemcpyAsync_v3020"
                                  : "cudaDeviceSynchronize_v3020";
  return kSuccess;
}
Result cuptiSetThreadIdType(std::uint32_t type) {
  thread_id_type = type;
  return kSuccess;
}
Result cuptiGetThreadIdType(std::uint32_t* type) {
  *type = thread_id_type;
  return kSuccess;
}
#endif
}
#pragma GCC visibility pop
