#include "observe/activity_records.h"

#include <cxxabi.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "observe/utf8_text.h"

namespace hotlap::cupti {
namespace {

constexpr std::size_t kMangledMax = 4096;
constexpr std::uint64_t kTimeMaxNs = INT64_MAX / 2;

// Named as Kineto names them: what reads those names need not know where they come from.
constexpr const char* kDirections[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                       "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
constexpr const char* kMemories[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                     "Array",   "Managed",  "Device Static", "Managed Static"};

template <std::size_t N>
std::string_view word_of(const char* const (&words)[N], std::uint8_t number) {
  return words[number < N ? number : 0];
}

template <class T>
const T& as(const Record& record) {
  return *reinterpret_cast<const T*>(&record);
}

}  // namespace

void ActivityRecords::begin(const Names& names, std::int64_t offset_ns) {
  names_ = names;
  offset_ns_ = offset_ns;
  count_ = 0;
  lost_ = 0;
  std::memset(correlations_, 0, sizeof correlations_);
  // Code may have been unloaded since, and other code be in its place.
  std::memset(kernel_names_, 0, sizeof kernel_names_);
}

void ActivityRecords::add(const Record& record) {
  switch (record.kind) {
    case Kind::kKernel: {
      const auto& kernel = as<KernelRecord>(record);
      return put({.start_ns = kernel.start_ns,
                  .end_ns = kernel.end_ns,
                  .place = kernel.stream,
                  .correlation = kernel.correlation,
                  .name = name_of_kernel(kernel.name),
                  .device = kernel.device});
    }
    case Kind::kCopy: return add_copy(as<CopyRecord>(record), as<CopyRecord>(record).correlation);
    case Kind::kPeerCopy: return add_copy(as<CopyRecord>(record), as<PeerCopyRecord>(record).correlation);
    case Kind::kFill: {
      const auto& fill = as<FillRecord>(record);
      return put({.start_ns = fill.start_ns,
                  .end_ns = fill.end_ns,
                  .bytes = fill.bytes,
                  .place = fill.stream,
                  .correlation = fill.correlation,
                  .name = names_.number_of("Memset (Device)"),
                  .device = fill.device,
                  .kind = SpanKind::kTransfer});
    }
    case Kind::kRuntimeCall: {
      const auto& call = as<CallRecord>(record);
      return put({.start_ns = call.start_ns,
                  .end_ns = call.end_ns,
                  .place = call.thread,
                  .correlation = call.correlation,
                  .name = names_.name_of_call(call.function),
                  .kind = SpanKind::kRuntime});
    }
    default: return;
  }
}

// What both kinds of copies begin with is the same.
void ActivityRecords::add_copy(const CopyRecord& copy, std::uint32_t correlation) {
  Utf8Text name;
  name.add("Memcpy ").add(word_of(kDirections, copy.direction));
  name.add(" (").add(word_of(kMemories, copy.from_memory));
  name.add(" -> ").add(word_of(kMemories, copy.to_memory)).add(")");
  put({.start_ns = copy.start_ns,
       .end_ns = copy.end_ns,
       .bytes = copy.bytes,
       .place = copy.stream,
       .correlation = correlation,
       .name = names_.number_of(name.view()),
       .device = copy.device,
       .kind = SpanKind::kTransfer});
}

void ActivityRecords::put(const Told& told) {
  // Incomplete ones have no end; where a device's memory for them ran out, no begin either.
  const bool has_times = told.start_ns != 0 && told.end_ns >= told.start_ns && told.end_ns < kTimeMaxNs;
  if (!has_times || count_ == kActivitiesMax || told.device >= kDevicesMax) {
    // Of calls only few would have been kept.
    if (told.kind != SpanKind::kRuntime) ++lost_;
    return;
  }
  if (told.kind != SpanKind::kRuntime) remember(told.correlation);
  activities_[count_++] = {.start_ns = static_cast<std::int64_t>(told.start_ns) + offset_ns_,
                           .duration_ns = static_cast<std::int64_t>(told.end_ns - told.start_ns),
                           .bytes = told.bytes <= INT64_MAX ? static_cast<std::int64_t>(told.bytes) : -1,
                           .place = told.place,
                           .correlation = told.correlation,
                           .name = told.name,
                           .kind = told.kind,
                           .device = static_cast<std::uint8_t>(told.device)};
}

void ActivityRecords::finish() {
  Activity* const end = std::remove_if(activities_, activities_ + count_, [this](const Activity& one) {
    return one.kind == SpanKind::kRuntime && one.duration_ns < kLongCallNs && !is_known(one.correlation);
  });
  // A launch before what it launched, also where both times are the same.
  std::sort(activities_, end, [](const Activity& a, const Activity& b) {
    const bool a_is_call = a.kind == SpanKind::kRuntime;
    const bool b_is_call = b.kind == SpanKind::kRuntime;
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a_is_call && !b_is_call;
  });
  count_ = static_cast<std::size_t>(end - activities_);
}

std::uint32_t ActivityRecords::name_of_kernel(const char* mangled) {
  if (mangled == nullptr) return 0;
  NameSlot& slot = kernel_names_[(reinterpret_cast<std::uintptr_t>(mangled) >> 3) % kNameSlots];
  if (slot.text == mangled) return slot.number;
  const std::size_t bytes = ::strnlen(mangled, kMangledMax);
  char* readable = nullptr;
  if (bytes < kMangledMax && std::strncmp(mangled, "_Z", 2) == 0) {
    int status = 0;
    readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  }
  const std::uint32_t number =
      names_.number_of(readable != nullptr ? std::string_view(readable) : std::string_view(mangled, bytes));
  std::free(readable);
  slot = {mangled, number};
  return number;
}

void ActivityRecords::remember(std::uint32_t correlation) {
  // At most a quarter of the places is taken.
  for (std::size_t at = correlation % kCorrelationSlots; correlations_[at] != correlation;
       at = (at + 1) % kCorrelationSlots) {
    if (correlations_[at] != 0) continue;
    correlations_[at] = correlation;
    return;
  }
}

bool ActivityRecords::is_known(std::uint32_t correlation) const {
  for (std::size_t at = correlation % kCorrelationSlots; correlations_[at] != 0; at = (at + 1) % kCorrelationSlots) {
    if (correlations_[at] == correlation) return true;
  }
  return false;
}

}  // namespace hotlap::cupti
