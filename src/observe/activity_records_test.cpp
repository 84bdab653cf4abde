#include "observe/activity_records.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "observe/activity_buffers.h"
#include "observe/gpu_index.h"
#include "support/temp_dir.h"

namespace hotlap::cupti {
namespace {

std::vector<std::string> names;

std::uint32_t number_of(std::string_view text) {
  names.emplace_back(text);
  return static_cast<std::uint32_t>(names.size());
}
std::uint32_t name_of_call(std::uint32_t function) { return number_of("call " + std::to_string(function)); }

class ActivityRecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    names.clear();
    records_->begin({.number_of = number_of, .name_of_call = name_of_call}, 1'000);
  }
  void add_kernel(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t correlation, const char* name = "k") {
    KernelRecord record{};
    record.head.kind = Kind::kKernel;
    record.start_ns = start_ns;
    record.end_ns = end_ns;
    record.device = 1;
    record.stream = 7;
    record.correlation = correlation;
    record.name = name;
    records_->add(record.head);
  }
  void add_call(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t correlation) {
    CallRecord record{};
    record.head.kind = Kind::kRuntimeCall;
    record.function = 211;
    record.start_ns = start_ns;
    record.end_ns = end_ns;
    record.thread = 99;
    record.correlation = correlation;
    records_->add(record.head);
  }
  std::string name(std::size_t index) const { return names.at(records_->at(index).name - 1); }

  std::unique_ptr<ActivityRecords> records_ = std::make_unique<ActivityRecords>();
};

TEST_F(ActivityRecordsTest, WorkAndWhatLaunchedItByTime) {
  add_kernel(5'000, 9'000, 3, "_Z5scalePfi");
  add_kernel(2'000, 4'000, 2, "plain");
  add_call(1'500, 1'900, 2);
  add_call(1'600, 1'700, 4);    // launched nothing that is here, and was short
  add_call(10'000, 40'000, 5);  // took long
  add_call(5'000, 5'000, 3);    // at the same time as its kernel
  records_->finish();
  ASSERT_EQ(records_->count(), 5U);
  EXPECT_EQ(records_->at(0).kind, SpanKind::kRuntime);
  EXPECT_EQ(name(0), "call 211");
  EXPECT_EQ(records_->at(0).start_ns, 2'500) << "on the clock of the ring";
  EXPECT_EQ(records_->at(0).place, 99U);
  EXPECT_EQ(name(1), "plain");
  EXPECT_EQ(records_->at(1).duration_ns, 2'000);
  EXPECT_EQ(records_->at(1).device, 1);
  EXPECT_EQ(records_->at(1).place, 7U);
  EXPECT_EQ(records_->at(2).kind, SpanKind::kRuntime);
  EXPECT_EQ(name(3), "scale(float*, int)");
  EXPECT_EQ(records_->at(4).duration_ns, 30'000);
  EXPECT_EQ(records_->lost(), 0U);
}

TEST_F(ActivityRecordsTest, CopiesAndFillsAreNamedAsKinetoNamesThem) {
  CopyRecord copy{};
  copy.head.kind = Kind::kCopy;
  copy.direction = 1;
  copy.from_memory = 1;
  copy.to_memory = 3;
  copy.bytes = 4096;
  copy.start_ns = 10;
  copy.end_ns = 20;
  records_->add(copy.head);
  PeerCopyRecord peer{};
  peer.head.kind = Kind::kPeerCopy;
  peer.direction = 10;
  peer.from_memory = peer.to_memory = 3;
  peer.start_ns = 30;
  peer.end_ns = 40;
  peer.correlation = 12;
  records_->add(peer.head);
  FillRecord fill{};
  fill.head.kind = Kind::kFill;
  fill.bytes = 64;
  fill.start_ns = 50;
  fill.end_ns = 60;
  records_->add(fill.head);
  copy.direction = 200;  // of a version that has more of them
  copy.from_memory = 200;
  copy.start_ns = 70;
  copy.end_ns = 80;
  records_->add(copy.head);
  records_->finish();
  ASSERT_EQ(records_->count(), 4U);
  EXPECT_EQ(name(0), "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(records_->at(0).bytes, 4096);
  EXPECT_EQ(name(1), "Memcpy PtoP (Device -> Device)");
  EXPECT_EQ(records_->at(1).correlation, 12U);
  EXPECT_EQ(name(2), "Memset (Device)");
  EXPECT_EQ(name(3), "Memcpy Unknown (Unknown -> Device)");
}

TEST_F(ActivityRecordsTest, WhatHasNoTimesOrNoRoomIsCounted) {
  add_kernel(5'000, 0, 1);  // had not ended
  add_kernel(0, 0, 2);      // the device had no memory for its times
  add_kernel(5'000, 4'000, 3);
  add_call(5'000, 0, 4);
  EXPECT_EQ(records_->lost(), 3U) << "of calls few are kept, so that one more or less says nothing";
  for (std::uint32_t i = 0; i < ActivityRecords::kActivitiesMax + 5; ++i) add_kernel(10 + i, 11 + i, i);
  records_->finish();
  EXPECT_EQ(records_->count(), ActivityRecords::kActivitiesMax);
  EXPECT_EQ(records_->lost(), 8U);
  Record other{static_cast<Kind>(9999)};
  records_->add(other);
  EXPECT_EQ(records_->count(), ActivityRecords::kActivitiesMax);
}

TEST(ActivityBuffersTest, AreGivenUntilNoneIsLeftAndAgainOnceTheyWereEmptied) {
  const auto buffers = std::make_unique<ActivityBuffers>();
  std::vector<std::uint8_t*> given;
  for (std::size_t i = 0; i < ActivityBuffers::kBuffers; ++i) given.push_back(buffers->give());
  EXPECT_TRUE(buffers->is_nearly_empty());
  EXPECT_EQ(buffers->give(), nullptr);
  EXPECT_EQ(buffers->take_refused(), 1U);
  std::uint8_t foreign = 0;
  buffers->take_back(&foreign, 1);
  EXPECT_EQ(buffers->given(), ActivityBuffers::kBuffers);
  buffers->take_back(given[3], 80);
  buffers->take_back(given[4], 2 * ActivityBuffers::kBufferBytes);
  std::vector<std::size_t> used;
  buffers->empty([&](std::uint8_t*, std::size_t bytes_used) { used.push_back(bytes_used); });
  EXPECT_EQ(used, (std::vector<std::size_t>{80, ActivityBuffers::kBufferBytes}));
  EXPECT_EQ(buffers->give(), given[3]);
}

TEST(GpuIndexTest, ByAddressAmongTheDriversAndByListOfNumbers) {
  const test::TempDir folder;
  for (const char* name : {"0000:3b:00.0", "0000:5e:00.0", "0001:01:00.0", "not a device"}) {
    std::filesystem::create_directory(folder.path() / name);
  }
  const std::string drivers = folder.path().native();
  EXPECT_EQ(gpu_index_of_pci("0000:5E:00.0", drivers.c_str()), 1);
  EXPECT_EQ(gpu_index_of_pci("00000001:01:00.0", drivers.c_str()), 2);
  EXPECT_EQ(gpu_index_of_pci("0000:99:00.0", drivers.c_str()), -1);
  EXPECT_EQ(gpu_index_of_pci("no address", drivers.c_str()), -1);
  EXPECT_EQ(gpu_index_of_pci("0000:5e:00.0", "/nowhere/at/all"), -1);
  EXPECT_EQ(gpu_index_of_list(1, nullptr), 1);
  EXPECT_EQ(gpu_index_of_list(1, "6,7"), 7);
  EXPECT_EQ(gpu_index_of_list(2, "6,7"), -1);
  EXPECT_EQ(gpu_index_of_list(0, "GPU-11aa"), -1);
}

}  // namespace
}  // namespace hotlap::cupti
