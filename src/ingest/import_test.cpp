#include "ingest/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>

#include "support/temp_dir.h"

namespace hotlap {
namespace {

using ::testing::HasSubstr;

// Counts only.
class CountingSink final : public ImportSink {
 public:
  void clock(const ImportClock&) override {}
  SeriesHandle series(const MetricDesc&, std::string_view) override { return {0}; }
  void sample(SeriesHandle, std::int64_t, Value) override { ++samples; }
  std::uint32_t name(std::string_view) override { return 1; }
  std::uint32_t process(const ProcessInfo& process) override { return process.slot == 0 ? ++processes : process.slot; }
  void span(const Span&) override { ++spans; }
  void event(const Event&) override {}
  void attribute(std::string_view, std::string_view) override {}
  void count_loss(std::string_view counter, std::uint64_t count, std::int64_t) override {
    losses[std::string(counter)] += count;
  }
  int samples = 0;
  int spans = 0;
  std::uint32_t processes = 0;
  std::map<std::string, std::uint64_t> losses;
};

constexpr std::string_view kTrace = R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
  {"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":-1}])";

class Import : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, std::string_view bytes) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  Result<ImportOutcome> import(const std::filesystem::path& path, const ImportOptions& options = {}) {
    return import_file(path, sink_, options);
  }
  std::string why(const std::string& name, std::string_view bytes) {
    const Result<ImportOutcome> outcome = import(file(name, bytes));
    return outcome.ok() ? "ok" : outcome.error().message;
  }
  static std::string gzip(std::string_view text) {
    std::string out(compressBound(text.size()) + 64, '\0');
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }

  test::TempDir folder_;
  CountingSink sink_;
};

TEST_F(Import, RecognisesByContentAndReadsThroughCompression) {
  const auto plain = import(file("no_ending", kTrace));
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->format, "chrome_trace");
  EXPECT_EQ(plain->stats.events, 2U);
  ASSERT_TRUE(import(file("a.json.gz", gzip(kTrace))).ok());
  EXPECT_EQ(sink_.spans, 4);
  const auto csv = import(file("series.csv", "t_s,metric,instance,value\n1,a.b,,2\n"));
  ASSERT_TRUE(csv.ok());
  EXPECT_EQ(csv->format, "series_csv");
  EXPECT_EQ(sink_.samples, 1);
}

TEST_F(Import, WhatIsOfNoFormatIsNamedInOneLine) {
  EXPECT_THAT(why("a.json", "<!DOCTYPE html><html><title>404</title>"), HasSubstr("web page"));
  EXPECT_THAT(why("a.json", ""), HasSubstr("it is empty"));
  EXPECT_THAT(why("a.zip", "PK\x03\x04rest"), HasSubstr("zip archive"));
  EXPECT_THAT(why("a.json", "version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(why("a.txt", "hello"), HasSubstr("text of no known format"));
  EXPECT_THAT(why("et.json", R"({"schema":"1.0.1","nodes":[{"ctrl_deps":1}]})"), HasSubstr("execution trace"));
  EXPECT_THAT(why("b.json.gz", "\x1F\x8B\x08nonsense that is no deflate stream at all"),
              HasSubstr("damaged at its start"));
  EXPECT_EQ(import(folder_.path() / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(import(file("x.txt", "x")).error().code, ErrorCode::kUnsupported);
}

TEST_F(Import, StrictRefusesARepairAndNotWhatIsOnlyLeftOut) {
  const auto path = file("a.json", kTrace);
  const auto strict = import(path, {.is_strict = true});
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(strict.error().message, HasSubstr("ingest.durations_invalid"));
  EXPECT_THAT(strict.error().message, HasSubstr("a.json: byte 57:"));
  EXPECT_TRUE(import(file("b.json", R"([{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":1}},{"ph":"s","ts":1}])"),
                     {.is_strict = true})
                  .ok());
}

TEST_F(Import, ACutGzipFileIsKeptAndCounted) {
  std::string text = "[";
  for (int i = 0; i < 20'000; ++i) {
    text +=
        R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":)" + std::to_string(i * 7919 % 100'003) + R"(,"dur":1},)" + "\n";
  }
  const std::string whole = gzip(text);
  const auto outcome = import(file("cut.json.gz", std::string_view(whole).substr(0, whole.size() / 2)));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_GT(sink_.spans, 1000);
  EXPECT_LT(sink_.spans, 20'000);
  EXPECT_GE(sink_.losses["ingest.input_truncated"], 1U);
}

TEST_F(Import, ABombIsReadNoFurtherThanItsLimit) {
  const std::string bomb = gzip("[" + std::string(std::size_t{8} << 20, ' ') + "]");
  std::uint64_t given = 0;
  ImportOptions options;
  options.expansion_free_bytes = std::uint64_t{1} << 20;
  options.expansion_max = 50;
  options.on_progress = [&](const ImportProgress& progress) { given = progress.bytes_given; };
  const auto outcome = import(file("bomb.json.gz", bomb), options);
  EXPECT_FALSE(outcome.ok());  // no event in it
  EXPECT_EQ(sink_.losses["ingest.expansion_stopped"], 1U);
  EXPECT_LT(given, std::uint64_t{4} << 20);
}

TEST_F(Import, CancellingKeepsWhatWasRead) {
  std::string text = "[";
  while (text.size() < (std::size_t{3} << 20))
    text += R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"dur":1},)"
            "\n";
  ImportOptions options;
  options.is_cancelled = [] { return true; };
  const auto outcome = import(file("long.json", text), options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->is_cancelled);
  EXPECT_GT(sink_.spans, 10'000);
  EXPECT_LT(sink_.spans, 30'000);
  EXPECT_EQ(sink_.losses["ingest.cancelled"], 1U);
}

TEST_F(Import, AFolderIsItsFilesOfKnownFormats) {
  file("run/b/x.json", kTrace);
  file("run/a.json.gz", gzip(kTrace));
  file("run/readme.txt", "hello");
  file("run/.hidden.json", kTrace);
  std::uint64_t skipped = 0;
  const auto files = files_to_import(folder_.path() / "run", &skipped);
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ((*files)[0].filename(), "a.json.gz");
  EXPECT_EQ((*files)[1].filename(), "x.json");
  EXPECT_EQ(skipped, 1U);
  file("empty/readme.txt", "hello");
  EXPECT_THAT(files_to_import(folder_.path() / "empty", nullptr).error().message, HasSubstr("none of the 1 files"));
}

TEST_F(Import, ANamedFormatOverrulesTheLooks) {
  EXPECT_THAT(import(file("a.json", kTrace), {.format = "nosuch"}).error().message, HasSubstr("no format nosuch"));
  EXPECT_TRUE(import(file("a.json", kTrace), {.format = "chrome_trace"}).ok());
}

}  // namespace
}  // namespace hotlap
