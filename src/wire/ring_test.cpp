#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "wire/ring_reader.h"
#include "wire/ring_text.h"
#include "wire/ring_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

class Ring : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hotlap-ring-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = (folder_ / "12-34.ring").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  RingWriter make_writer(std::uint64_t data_bytes = 8192) {
    auto writer = RingWriter::create(path_, RingIdentity{}, data_bytes);
    EXPECT_TRUE(writer.ok());
    return std::move(writer).value();
  }
  Result<RingReader> try_open() { return RingReader::open(path_, ::geteuid()); }
  RingReader open() {
    auto reader = try_open();
    EXPECT_TRUE(reader.ok()) << reader.error().message;
    return std::move(reader).value();
  }
  // The lines of one poll that must succeed.
  static std::string drain(RingReader& reader) {
    std::string text;
    RecordText visitor(text);
    const auto polled = reader.poll(visitor);
    EXPECT_TRUE(polled.ok());
    return text;
  }
  void overwrite(std::uint64_t offset, const void* bytes, std::size_t count) const {
    const int fd = ::open(path_.c_str(), O_RDWR);
    ASSERT_EQ(::pwrite(fd, bytes, count, static_cast<off_t>(offset)), static_cast<ssize_t>(count));
    ::close(fd);
  }
  template <class T>
  void overwrite(std::uint64_t offset, T value) const {
    overwrite(offset, &value, sizeof value);
  }

  fs::path folder_;
  std::string path_;
};

Span step(std::int64_t index) {
  return {.start_ns = 1000 * index, .duration_ns = 900, .kind = SpanKind::kStep, .thread = 7, .step = index};
}
std::string step_line(std::int64_t index) {
  return format("span kind=1 flags=0 start={} duration=900 thread=7 name=0 step={} a=-1 b=-1\n", 1000 * index, index);
}

TEST_F(Ring, EveryRecordArrivesAsItWasWritten) {
  RingWriter writer = make_writer();
  RingReader reader = open();
  EXPECT_EQ(drain(reader), "");
  writer.name(1, "caf\xC3\xA9\n");
  writer.span(
      {.start_ns = 5, .duration_ns = 6, .kind = SpanKind::kUser, .thread = 8, .name = 1, .step = 2, .value_a = 3}, 1);
  writer.info(9, "torch", R"({"version":"2.9"})");
  writer.count(1, 10, 2.5, 3);
  writer.phase(11, 3, -1);
  writer.process({.role = 2, .t_ns = 12, .rank = 3, .local_rank = 1, .world_size = 4, .worker_id = -1, .pid = 99});
  writer.end(13, 0);
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(drain(reader),
            "name id=1 text=caf\xC3\xA9\n\n"
            "span kind=18 flags=1 start=5 duration=6 thread=8 name=1 step=2 a=3 b=-1\n"
            "info t=9 key=torch json={\"version\":\"2.9\"}\n"
            "count name=1 flags=0 t=10 value=2.500000 step=3\n"
            "phase t=11 phase=3 step=-1\n"
            "process t=12 role=2 rank=3 local_rank=1 world_size=4 worker=-1 attempt=0 pid=99 parent=0\n"
            "end t=13 reason=0\n");
  EXPECT_EQ(reader.live().records_sent, 7U);
  EXPECT_EQ(reader.counters(), (RingCounters{.frames = 1, .records = 7}));
}

TEST_F(Ring, GoesRoundManyTimesWithoutLosingARecord) {
  RingWriter writer = make_writer(4096);
  RingReader reader = open();
  std::string expected;
  std::string got;
  for (std::int64_t i = 0; i < 2000; ++i) {
    for (std::int64_t k = 0; k <= i % 7; ++k) {
      writer.span(step(10 * i + k));
      expected += step_line(10 * i + k);
    }
    ASSERT_TRUE(writer.flush());
    if (i % 3 == 0) got += drain(reader);
  }
  got += drain(reader);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(reader.counters().frames_damaged, 0U);
}

TEST_F(Ring, AFullRingDropsAndCountsAndGoesOn) {
  RingWriter writer = make_writer(4096);
  RingReader reader = open();
  std::uint64_t kept = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    writer.span(step(i));
    kept += writer.flush() ? 1 : 0;
  }
  (void)drain(reader);
  EXPECT_EQ(reader.counters().records, kept);
  EXPECT_EQ(reader.live().records_sent + reader.live().records_dropped, 200U);
  writer.span(step(500));
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(drain(reader), step_line(500));
  EXPECT_EQ(reader.counters().frames_damaged, 0U);
}

TEST_F(Ring, ANewReaderGoesOnWhereTheDeadOneStopped) {
  RingWriter writer = make_writer();
  {
    RingReader first = open();
    writer.span(step(1));
    ASSERT_TRUE(writer.flush());
    EXPECT_EQ(drain(first), step_line(1));
  }
  writer.span(step(2));
  ASSERT_TRUE(writer.flush());
  RingReader second = open();
  EXPECT_EQ(drain(second), step_line(2));
}

TEST_F(Ring, AWriterKilledInTheMiddleLeavesOnlyWhatItPublished) {
  RingWriter writer = make_writer();
  writer.span(step(1));
  ASSERT_TRUE(writer.flush());
  overwrite<std::uint64_t>(kRingPageBytes + writer.page().head, 0x0000004000000038);  // half a frame, head not moved
  RingReader reader = open();
  EXPECT_EQ(drain(reader), step_line(1));
  EXPECT_EQ(drain(reader), "");
  EXPECT_EQ(reader.counters().frames_damaged, 0U);
}

TEST_F(Ring, ADamagedFrameIsSkippedOnceItFailsTwice) {
  RingWriter writer = make_writer();
  for (std::int64_t i = 0; i < 3; ++i) {
    writer.span(step(i));
    ASSERT_TRUE(writer.flush());
  }
  const std::uint64_t second = kRingPageBytes + ring_frame_bytes(sizeof(SpanRecord));
  overwrite<std::uint8_t>(second + sizeof(RingFrameHead) + 9, 0xAA);
  RingReader reader = open();
  EXPECT_EQ(drain(reader), step_line(0));
  EXPECT_EQ(reader.counters().frames_damaged, 0U);
  EXPECT_EQ(drain(reader), step_line(2));
  EXPECT_EQ(reader.counters().frames_damaged, 1U);
  EXPECT_EQ(reader.counters().bytes_skipped, ring_frame_bytes(sizeof(SpanRecord)));
}

TEST_F(Ring, AFrameThatWasNotVisibleYetArrivesAtTheNextPoll) {
  RingWriter writer = make_writer();
  writer.span(step(1));
  ASSERT_TRUE(writer.flush());
  const std::uint64_t whole = *reinterpret_cast<const std::uint64_t*>(&writer.page() + 1);
  overwrite<std::uint64_t>(kRingPageBytes, 0);
  RingReader reader = open();
  EXPECT_EQ(drain(reader), "");
  overwrite<std::uint64_t>(kRingPageBytes, whole);
  EXPECT_EQ(drain(reader), step_line(1));
  EXPECT_EQ(reader.counters().frames_damaged, 0U);
}

TEST_F(Ring, ALyingLengthCannotReachBeyondTheFrame) {
  RingWriter writer = make_writer();
  std::array<std::byte, 12> content{};
  writer.raw({1, 0, 16}, content);  // a span of 16 bytes
  writer.raw({2, 0, 64}, content);  // larger than its frame
  ASSERT_TRUE(writer.flush());
  const NameRecord lying{{2, 0, 16}, 5, 60'000, {}};
  writer.raw(lying.head, ByteView(reinterpret_cast<const std::byte*>(&lying) + 4, 12));
  writer.raw({99, 0, 16}, content);  // a type of the future
  writer.span(step(4));
  ASSERT_TRUE(writer.flush());
  RingReader reader = open();
  EXPECT_EQ(drain(reader), step_line(4));
  EXPECT_EQ(reader.counters().records_malformed, 3U);
  EXPECT_EQ(reader.counters().records_unknown, 1U);
}

TEST_F(Ring, WhatIsNoRingIsRefusedWithAReason) {
  const auto refused = [&](ErrorCode code, const char* why) {
    const auto reader = try_open();
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.error().code, code);
    EXPECT_NE(reader.error().message.find(why), std::string::npos) << reader.error().message;
  };
  refused(ErrorCode::kNotFound, "no such file");
  std::ofstream(path_) << "short";
  refused(ErrorCode::kCorrupt, "too short");
  fs::remove(path_);
  { const RingWriter writer = make_writer(); }
  overwrite<std::uint32_t>(8, 2);
  refused(ErrorCode::kUnsupported, "newer");
  overwrite<std::uint32_t>(8, 1);
  overwrite<std::uint64_t>(16, 1ULL << 40);
  refused(ErrorCode::kCorrupt, "impossible sizes");
  overwrite<std::uint64_t>(16, 1 << 20);
  refused(ErrorCode::kCorrupt, "cut short");
  overwrite<std::uint64_t>(16, 8192);
  overwrite<std::uint64_t>(1024, 1 << 20);
  refused(ErrorCode::kCorrupt, "impossible positions");
  overwrite<std::uint8_t>(0, 'h');
  refused(ErrorCode::kCorrupt, "not a ring");
  const auto foreign = RingReader::open(path_, ::geteuid() + 1);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().code, ErrorCode::kInvalidInput);
  fs::rename(path_, path_ + ".real");
  fs::create_symlink(path_ + ".real", path_);
  EXPECT_FALSE(try_open().ok());
}

TEST_F(Ring, AFileCutShortUnderTheReaderIsAnError) {
  RingWriter writer = make_writer();
  RingReader reader = open();
  writer.span(step(1));
  ASSERT_TRUE(writer.flush());
  fs::resize_file(path_, kRingPageBytes);
  std::string text;
  RecordText visitor(text);
  const auto polled = reader.poll(visitor);
  ASSERT_FALSE(polled.ok());
  EXPECT_EQ(polled.error().code, ErrorCode::kCorrupt);
  fs::resize_file(path_, 10);
  EXPECT_FALSE(reader.poll(visitor).ok());
}

TEST_F(Ring, PositionsThatRunBackwardsAreAnError) {
  RingWriter writer = make_writer();
  writer.span(step(1));
  ASSERT_TRUE(writer.flush());
  RingReader reader = open();
  (void)drain(reader);
  overwrite<std::uint64_t>(offsetof(RingPage, head), 0);
  std::string text;
  RecordText visitor(text);
  EXPECT_FALSE(reader.poll(visitor).ok());
  EXPECT_EQ(text, "");
}

TEST_F(Ring, CommandsReachTheWriterAndAnswersTheReader) {
  RingWriter writer = make_writer();
  RingReader reader = open();
  const auto word = reader.send(HookCommand::kProfile, 20);
  ASSERT_TRUE(word.ok());
  EXPECT_EQ(writer.page().command.word, *word);
  EXPECT_EQ(writer.page().command.argument, 20U);
  writer.page().answer = {*word, static_cast<std::uint64_t>(HookAnswer::kUnsupported)};
  (void)drain(reader);
  EXPECT_EQ(reader.answer().word, *word);
  EXPECT_EQ(reader.answer().result, static_cast<std::uint64_t>(HookAnswer::kUnsupported));
  const auto next = reader.send(HookCommand::kOff, 0);
  ASSERT_TRUE(next.ok());
  EXPECT_NE(*next >> 16, *word >> 16);
}

TEST_F(Ring, NamesAndReasonsOfTheFolderAreRead) {
  const auto name = parse_ring_file_name("812-99120.off");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->pid, 812U);
  EXPECT_EQ(name->start_ticks, 99120U);
  EXPECT_EQ(name->suffix, kRingOffSuffix);
  EXPECT_EQ(name->source, "");
  const auto native = parse_ring_file_name("812-99120.nvtx.ring");
  ASSERT_TRUE(native.has_value());
  EXPECT_EQ(native->source, "nvtx");
  EXPECT_EQ(native->start_ticks, 99120U);
  EXPECT_EQ(native->suffix, kRingSuffix);
  for (const char* other :
       {"812-99120..ring", "812-99120.nvtx.ring.new", "812-99120.n-x.ring", "812-99120.aaaaaaaaaaaaaaaaa.ring",
        "812-99120.ring.new", "812.ring", "-5.ring", "0-5.ring", "a-b.ring", "5-6", "99999999999-1.ring"}) {
    EXPECT_FALSE(parse_ring_file_name(other).has_value()) << other;
  }
  const std::string off = (folder_ / "812-99120.off").string();
  std::ofstream(off) << "ring-allocation: No space left\x1b[31m on device\nsecond line";
  EXPECT_EQ(*read_off_reason(off, ::geteuid()), "ring-allocation: No space left?[31m on device");
}

}  // namespace
}  // namespace hotlap
