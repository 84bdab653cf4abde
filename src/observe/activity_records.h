#pragma once
// What CUPTI's records say of one window, as spans: taken in as they come, then put in order of time, with the calls of
// the runtime that launched something of it, or took long. One thread at a time; bounded. Lies in zeroed memory; there
// is no constructor.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/span.h"
#include "observe/cupti_abi.h"

namespace hotlap::cupti {

// From CUPTI's clock to CLOCK_MONOTONIC: read one after the other at the begin and the end of a window.
struct ClockReading {
  std::int64_t cupti_ns;
  std::int64_t monotonic_ns;
  std::int64_t offset_ns() const { return monotonic_ns - cupti_ns; }
};

struct Activity {
  std::int64_t start_ns;
  std::int64_t duration_ns;
  std::int64_t bytes;   // of a copy or fill; -1: none
  std::uint32_t place;  // the stream; of a call its thread
  std::uint32_t correlation;
  std::uint32_t name;
  SpanKind kind;
  std::uint8_t device;  // its number in this process
};

class ActivityRecords {
 public:
  static constexpr std::size_t kActivitiesMax = 16'384;
  static constexpr std::uint32_t kDevicesMax = 64;
  static constexpr std::int64_t kLongCallNs = 20'000;

  // Where names get their numbers.
  struct Names {
    std::uint32_t (*number_of)(std::string_view);
    std::uint32_t (*name_of_call)(std::uint32_t function);
  };

  void begin(const Names& names, std::int64_t offset_ns);
  // Kinds that are not used, and records of more devices than kDevicesMax, are passed over.
  void add(const Record& record);
  // After the last one: what remains of them, by start. Calls that launched nothing of it and were short are left out.
  void finish();

  std::size_t count() const { return count_; }
  const Activity& at(std::size_t index) const { return activities_[index]; }
  // Records that could not be used: without times, or beyond the bound.
  std::uint64_t lost() const { return lost_; }

 private:
  static constexpr std::size_t kCorrelationSlots = 4 * kActivitiesMax;  // a power of two
  static constexpr std::size_t kNameSlots = 4096;

  struct NameSlot {
    const char* text;
    std::uint32_t number;
  };

  // As a record has it.
  struct Told {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    std::uint64_t bytes = UINT64_MAX;
    std::uint32_t place = 0;
    std::uint32_t correlation = 0;
    std::uint32_t name = 0;
    std::uint32_t device = 0;
    SpanKind kind = SpanKind::kKernel;
  };

  void put(const Told& told);
  void add_copy(const CopyRecord& copy, std::uint32_t correlation);
  std::uint32_t name_of_kernel(const char* mangled);
  void remember(std::uint32_t correlation);
  bool is_known(std::uint32_t correlation) const;

  Names names_;
  std::int64_t offset_ns_;
  std::size_t count_;
  std::uint64_t lost_;
  Activity activities_[kActivitiesMax];
  std::uint32_t correlations_[kCorrelationSlots];  // of work; 0: free
  NameSlot kernel_names_[kNameSlots];
};

}  // namespace hotlap::cupti
