#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/host.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "base/text.h"

namespace hotlap {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{ErrorCode::kInvalidInput, "odd"};
  return n / 2;
}
Result<int> quarter(int n) {
  HOTLAP_TRY_ASSIGN(const int once, half(n));
  return half(once);
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(*quarter(8), 2);
  const Result<int> bad = quarter(6);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "odd");
  EXPECT_EQ(Error(bad.error()).with_context("file").message, "file: odd");
}

TEST(ResultDeathTest, ReadingAnAbsentValueAborts) { EXPECT_DEATH((void)half(1).value(), "internal error"); }

TEST(Bytes, VarintsSurviveARoundTripAndShortInputIsNoticed) {
  Bytes out;
  const std::uint64_t values[] = {0, 127, 128, 300, UINT64_MAX};
  for (const std::uint64_t v : values) put_varint(out, v);
  ByteReader reader(out);
  for (const std::uint64_t v : values) EXPECT_EQ(reader.varint(), v);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.varint(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(unzigzag(zigzag(INT64_MIN)), INT64_MIN);
}

TEST(Bytes, OverlongVarintIsRefused) {
  const Bytes eleven(11, std::byte{0x80});
  ByteReader reader(eleven);
  (void)reader.varint();
  EXPECT_FALSE(reader.ok());
}

// The check value of this CRC in the catalogues, and the agreement of the 8-byte path with the byte-wise one.
TEST(Bytes, Crc32MatchesZlib) {
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xCBF43926U);
  const std::string_view text = "a longer text that takes the wide path";
  EXPECT_EQ(crc32(as_bytes(text.substr(3)), crc32(as_bytes(text.substr(0, 3)))), crc32(as_bytes(text)));
}

TEST(Text, DurationsAndNumbers) {
  EXPECT_EQ(parse_duration_ns("500ms"), 500'000'000);
  EXPECT_EQ(parse_duration_ns("1.5min"), 90'000'000'000);
  EXPECT_FALSE(parse_duration_ns("5"));
  EXPECT_FALSE(parse_duration_ns("ms"));
  EXPECT_FALSE(parse_duration_ns("5 ms"));
  EXPECT_FALSE(parse_u64("12x"));
  EXPECT_FALSE(parse_u64("-1"));
  EXPECT_EQ(format_duration(1'500'000'000), "1.5 s");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

TEST(Text, ForeignTextCannotReachTheTerminalRaw) {
  EXPECT_EQ(strip_control("a\x1b[31mb\x07\xC2\x9B"), "a?[31mb??");
  EXPECT_EQ(to_valid_utf8("x\xC3(\xFF"), "x\xEF\xBF\xBD(\xEF\xBF\xBD");
  // Kept: the ends of each range. Replaced: overlong forms, surrogates, beyond U+10FFFF, cut short.
  for (const std::string_view good :
       {"\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(to_valid_utf8(good), good);
  }
  for (const std::string_view bad : {"\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                     "\xE2\x82", "\xF5\x80\x80\x80"}) {
    EXPECT_NE(to_valid_utf8(bad), bad);
  }
}

TEST(Text, CountsAreGroupedByThousands) {
  EXPECT_EQ(shown_count(0), "0");
  EXPECT_EQ(shown_count(999), "999");
  EXPECT_EQ(shown_count(1'000), "1,000");
  EXPECT_EQ(shown_count(1'234'567), "1,234,567");
}

TEST(Text, NearestIsWhatWasProbablyMeant) {
  const std::array<std::string_view, 5> names{"analyze", "run", "record", "--interval", "--name"};
  EXPECT_EQ(nearest_text("anaylze", names), "analyze");
  EXPECT_EQ(nearest_text("rnu", names), "run");
  EXPECT_EQ(nearest_text("rec", names), "record");
  EXPECT_EQ(nearest_text("--intervall", names), "--interval");
  EXPECT_EQ(nearest_text("serve", names), "");
  EXPECT_EQ(nearest_text("", names), "");
  EXPECT_EQ(nearest_text(std::string(1'000'000, 'r'), names), "");
}

TEST(Json, WritesAndReadsBack) {
  JsonWriter w;
  w.begin_object()
      .field("name", "caf\xC3\xA9 \x01")
      .field("n", std::int64_t{-3})
      .key("absent")
      .value(std::optional<double>{});
  w.key("nan").value(std::numeric_limits<double>::quiet_NaN()).end_object();
  const std::string json = w.take();
  const auto parsed = JsonDocument::parse(json);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->root()["n"].integer(), -3);
  EXPECT_TRUE(parsed->root()["absent"].is_null());
  EXPECT_TRUE(parsed->root()["nan"].is_null());
  EXPECT_FALSE(parsed->root()["other"].exists());
  EXPECT_FALSE(JsonDocument::parse("{\"a\":").ok());
}

TEST(Json, NestingMayBeAsDeepAsTheTextIsLong) {
  constexpr std::size_t kDepth = 1'000'000;
  EXPECT_TRUE(JsonDocument::parse(std::string(kDepth, '[') + std::string(kDepth, ']')).ok());
  EXPECT_FALSE(JsonDocument::parse(std::string(kDepth, '[')).ok());
}

TEST(Host, CpuTimeOfAProcessGrowsAndAnEndedOneIsNotFound) {
  const auto before = system_host().process_cpu_ns(::getpid());
  ASSERT_TRUE(before.ok()) << before.error().message;
  std::uint64_t spin = 0;
  for (std::uint64_t i = 0; i < 5'000'000; ++i) spin += i ^ (spin << 1U);
  EXPECT_NE(spin, 0U);
  EXPECT_GT(*system_host().process_cpu_ns(::getpid()), *before);
  const auto none = system_host().process_cpu_ns(INT32_MAX / 16);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(none.error().os_error, ESRCH);
}

// A file made in one piece ends where a read is short, also when it fills the first buffer exactly or exceeds it.
TEST(Host, RecordsAreReadWhole) {
  auto one_piece = KeptFile::open(system_host(), "/proc/self/status");
  ASSERT_TRUE(one_piece.ok());
  const std::string whole(*one_piece->read());
  EXPECT_EQ(one_piece->read_record()->substr(0, 5), whole.substr(0, 5));
  EXPECT_EQ(one_piece->read_record()->find("voluntary_ctxt_switches"), whole.find("voluntary_ctxt_switches"));
}

// A list is longer than what the kernel gives at once: it comes in parts that end with a line, none of them the end.
TEST(KeptFile, ReadsAListToItsEnd) {
  for (const char* path : {"/proc/vmstat", "/proc/devices", "/proc/kallsyms"}) {
    Result<KeptFile> list = KeptFile::open(system_host(), path);
    if (!list.ok()) continue;
    const std::size_t whole = std::ranges::count(*list->read(), '\n');
    EXPECT_EQ(std::ranges::count(*list->read_list(), '\n'), whole) << path;
    EXPECT_GT(whole, 0) << path;
  }
}

TEST(Host, ReadsFilesAndSaysWhatIsMissing) {
  const auto stat = KeptFile::open(system_host(), "/proc/self/stat");
  ASSERT_TRUE(stat.ok());
  const auto absent = system_host().read_text("/proc/no-such-file");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
}

TEST(Host, TakesNoMoreOfAFileThanItIsAskedFor) {
  const std::string path = (std::filesystem::temp_directory_path() / format("hotlap-host-{}", ::getpid())).string();
  for (const std::size_t length : {0, 63, 64, 65, 4'095, 4'096, 4'097, 5'000, 8'192, 8'193}) {
    std::ofstream(path) << std::string(length, 'x');
    for (const std::size_t bytes_max : {64, 4'096, 5'000, 8'192}) {
      const Result<std::string> text = system_host().read_text(path, bytes_max);
      ASSERT_EQ(text.ok(), length <= bytes_max) << length << " of " << bytes_max;
      if (text.ok()) {
        EXPECT_EQ(text->size(), length);
      } else {
        EXPECT_EQ(text.error().code, ErrorCode::kResourceLimit);
      }
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hotlap
