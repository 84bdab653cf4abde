// The golden rings: the same records written by this test and by tests/hook/test_wire.py must be the same bytes,
// and both sides read them as the same lines. HOTLAP_UPDATE_GOLDEN=1 rewrites the files (from this side).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "support/golden.h"
#include "wire/ring_reader.h"
#include "wire/ring_text.h"
#include "wire/ring_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(HOTLAP_SOURCE_DIR) / "tests/golden/wire";

RingIdentity golden_identity() {
  RingIdentity identity{};
  identity.uid = 1000;
  identity.pid = 4711;
  identity.start_ticks = 123456;
  identity.parent_pid = 4700;
  identity.writer_kind = 1;
  identity.created_mono_ns = 1'000'000'000;
  identity.created_boot_ns = 1'500'000'000;
  std::memcpy(identity.run_id, "01J0000000000000000000TEST", 26);
  identity.role = 2;
  identity.rank = 3;
  identity.local_rank = 1;
  identity.world_size = 4;
  identity.worker_id = -1;
  identity.attempt = 0;
  return identity;
}

void write_plain(RingWriter& writer) {
  writer.process({.role = 2,
                  .t_ns = 1'000'000'000,
                  .rank = 3,
                  .local_rank = 1,
                  .world_size = 4,
                  .worker_id = -1,
                  .attempt = 0,
                  .pid = 4711,
                  .parent_pid = 4700});
  writer.info(1'000'000'001, "versions", R"({"python":"3.11.2","torch":"1.13.1"})");
  writer.phase(1'000'000'002, 2, -1);
  ASSERT_TRUE(writer.flush());
  writer.name(1, "loader");
  writer.name(2, "na\xC3\xAFve \xE2\x82\xAC name");
  writer.span({.start_ns = 2'000'000'000,
               .duration_ns = 5'000'000,
               .kind = SpanKind::kDataWait,
               .thread = 4711,
               .name = 1,
               .step = 0,
               .value_a = 64,
               .value_b = 38'535'168});
  writer.count(1, 2'005'000'000, 2.5, 0);
  writer.span({.start_ns = 1'990'000'000,
               .duration_ns = 95'000'000,
               .kind = SpanKind::kStep,
               .thread = 4711,
               .step = 0,
               .value_a = 64},
              kStepByOptimizer);
  ASSERT_TRUE(writer.flush());
  writer.phase(2'100'000'000, 5, 0);
  writer.end(2'200'000'000, 0);
  ASSERT_TRUE(writer.flush());
  RingLive& live = writer.page().live;
  live.phase = 5;
  live.step = 0;
  live.step_end_ns = 2'085'000'000;
  live.own_time_ns = 12'345;
  live.closed = 1;
}

// What a rank on a device writes: figures of its own, calls of torch.distributed, and page 0 while it is in one.
void write_device(RingWriter& writer) {
  writer.name(1, "allocator.allocated.bytes cuda:0");
  writer.name(2, "all_reduce (gloo, group 0)");
  writer.name(3, "loss");
  writer.count(1, 2'000'000'000, 17'179'869'184.0, -1, kCountOfHook);
  writer.count(3, 2'000'000'001, 0.25, 0);
  writer.span({.start_ns = 2'000'000'100,
               .duration_ns = 1'500'000,
               .kind = SpanKind::kCollective,
               .thread = 4711,
               .name = 2,
               .step = 0,
               .value_a = 4096,
               .value_b = 41});
  writer.info(2'000'000'200, "communication_unseen", R"("DistributedDataParallel")");
  ASSERT_TRUE(writer.flush());
  writer.page().live.collective_group = 2;
  writer.page().live.collective_sequence = 42;
  writer.page().live.parts_shed =
      static_cast<std::uint64_t>(HookPart::kCollectives) | static_cast<std::uint64_t>(HookPart::kDevice);
}

void write_step(RingWriter& writer, std::int64_t index) {
  for (int k = 0; k < 3; ++k) {
    writer.span(
        {.start_ns = 1000 * index + k, .duration_ns = 10, .kind = SpanKind::kForward, .thread = 1, .step = index});
  }
  ASSERT_TRUE(writer.flush());
}

struct GoldenCase {
  const char* name;
  void (*write)(RingWriter&);  // null: more than the ring holds, so that it wraps
  friend std::ostream& operator<<(std::ostream& out, const GoldenCase& test) { return out << test.name; }
};

class WireGolden : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(WireGolden, BytesAndLinesAreTheGoldenOnes) {
  const GoldenCase& golden = GetParam();
  const fs::path path = fs::temp_directory_path() / format("hotlap-golden-{}-{}.ring", golden.name, ::getpid());
  fs::remove(path);
  std::string lines;
  RecordText visitor(lines);
  {
    auto writer = RingWriter::create(path.string(), golden_identity(), kRingDataBytesMin);
    ASSERT_TRUE(writer.ok());
    if (golden.write == nullptr) {
      auto reader = RingReader::open(path.string(), ::geteuid());
      ASSERT_TRUE(reader.ok());
      for (std::int64_t i = 0; i < 40; ++i) {
        write_step(*writer, i);
        if (i % 10 != 9 || i == 39) continue;
        ASSERT_TRUE(reader->poll(visitor).ok());
      }
      lines.clear();
    } else {
      golden.write(*writer);
    }
  }
  const std::string written = test::file_text(path);
  auto reader = RingReader::open(path.string(), ::geteuid());
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE(reader->poll(visitor).ok());
  fs::remove(path);
  EXPECT_EQ(reader->run_id(), "01J0000000000000000000TEST");
  test::expect_golden(kGolden / format("{}.txt", golden.name), lines);
  test::expect_golden(kGolden / format("{}.bin", golden.name), written);
}

INSTANTIATE_TEST_SUITE_P(All, WireGolden,
                         ::testing::Values(GoldenCase{"plain", write_plain}, GoldenCase{"wrapped", nullptr},
                                           GoldenCase{"device", write_device}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace hotlap
