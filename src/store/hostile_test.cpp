// Files that are not what they claim to be: one clear error, or everything that can still be read, and never a
// crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/format.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr MetricDesc kMetric{.name = "test.value", .unit = "1", .kind = MetricKind::kCounter};

class HostileFile : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where that can be: hundreds of files are made.
    const fs::path base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path();
    std::string pattern = (base / "hotlap-hostile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    ::chmod(folder_.c_str(), 0700);
    fs::remove_all(folder_);
  }
  fs::path file() const { return folder_ / "r.hotlap"; }

  std::unique_ptr<RecordingWriter> make() {
    auto writer = RecordingWriter::create(file(), {.run_id = "01J00000000000000000000000"}, {});
    EXPECT_TRUE(writer.ok());
    const SeriesHandle series = *(*writer)->add_series(kMetric, "");
    for (std::int64_t tick = 0; tick < 3'000; ++tick) {
      (*writer)->add_tick(tick * kNsPerS,
                          std::vector<Sample>{{series, Value::of(static_cast<std::uint64_t>(tick * tick))}});
      (*writer)->add_span({.start_ns = tick, .duration_ns = 1, .kind = SpanKind::kStep, .step = tick});
      if (tick % 100 == 99) {
        EXPECT_TRUE((*writer)->commit().ok());
      }
    }
    (*writer)->add_event({.t_ns = 1, .kind = EventKind::kNote, .value = 0, .text = "x"});
    return std::move(writer).value();
  }
  void make_closed() { ASSERT_TRUE(make()->close().ok()); }

  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  Error error_of_open() {
    auto reader = RecordingReader::open(file());
    EXPECT_FALSE(reader.ok());
    if (reader.ok()) return {ErrorCode::kInternal, ""};
    EXPECT_THAT(reader.error().message, HasSubstr(file().string()));
    EXPECT_THAT(reader.error().message, ::testing::Not(HasSubstr("\n")));
    return reader.error();
  }

  // Reads all that there is; the number of samples and spans.
  static std::size_t read_all(RecordingReader& reader, const std::function<void(const Error&)>& told = {}) {
    const auto look = [&](const auto& outcome) {
      if (!outcome.ok() && told) told(outcome.error());
    };
    std::size_t found = 0;
    std::vector<SeriesHandle> all;
    for (const StoredSeries& series : reader.series()) all.push_back(series.handle);
    look(reader.read_samples(all, {},
                             [&](SeriesHandle, std::span<const SamplePoint> points) { found += points.size(); }));
    for (const std::size_t points : {2U, 100U, 100'000U}) {
      look(reader.read_tiers(all, {}, points, [](SeriesHandle, std::span<const TierPoint>) {}));
    }
    look(reader.read_spans({}, {}, [&](std::span<const Span> spans) { found += spans.size(); }));
    look(reader.read_events({}));
    look(reader.read_clock());
    look(reader.read_processes());
    look(reader.read_losses());
    look(reader.read_attributes());
    (void)reader.name(1);
    return found;
  }

  fs::path folder_;
};

TEST_F(HostileFile, NotThere) { EXPECT_EQ(error_of_open().code, ErrorCode::kNotFound); }

TEST_F(HostileFile, Folder) {
  fs::create_directory(file());
  EXPECT_THAT(error_of_open().message, HasSubstr("folder"));
}

TEST_F(HostileFile, Empty) {
  std::ofstream(file()).flush();
  EXPECT_EQ(error_of_open().code, ErrorCode::kCorrupt);
}

TEST_F(HostileFile, Text) {
  std::ofstream(file()) << std::string(5'000, 'x');
  EXPECT_EQ(error_of_open().code, ErrorCode::kCorrupt);
}

TEST_F(HostileFile, AnotherProgramsDatabase) {
  sql("CREATE TABLE t(x)");
  const Error error = error_of_open();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("another program"));
}

TEST_F(HostileFile, FutureFormatSaysWhoCanReadIt) {
  make_closed();
  sql("PRAGMA user_version=77");
  const Error error = error_of_open();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("77"));
  EXPECT_THAT(error.message, HasSubstr("newer"));
}

TEST_F(HostileFile, AnythingButOurTablesIsRefused) {
  for (const char* text : {"CREATE VIEW v AS SELECT 1", "CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END",
                           "CREATE TABLE other(x)", "CREATE INDEX i ON events(t_ns)", "DROP TABLE spans",
                           "ALTER TABLE events ADD COLUMN more TEXT",
                           "DROP TABLE series; CREATE VIEW series AS SELECT 0 id,0 metric,'' instance"}) {
    make_closed();
    sql(text);
    EXPECT_EQ(error_of_open().code, ErrorCode::kCorrupt) << text;
    fs::remove(file());
  }
}

TEST_F(HostileFile, RowsThatLieAreErrorsOrSkipped) {
  for (const char* text :
       {"UPDATE series SET id=9", "UPDATE series SET metric=5", "INSERT INTO names VALUES(5,'x')",
        "UPDATE stretches SET id=-1 WHERE id=1", "UPDATE stretches SET from_ns='x',to_ns=x'00'",
        "UPDATE spans SET count=-1", "UPDATE spans SET id=9223372036854775807 WHERE id=0",
        "UPDATE spans SET count=99999999", "UPDATE blocks SET payload=x'00'", "UPDATE blocks SET payload='text'",
        "DELETE FROM blocks WHERE id&0xF0000=0", "UPDATE blocks SET id=id+1 WHERE id&0xFFFFF=0x10000",
        "UPDATE events SET kind=7000,text=x'FFFE'",
        "INSERT INTO meta VALUES('interval_ns','many') ON CONFLICT DO UPDATE SET text='many'",
        "INSERT INTO processes VALUES(-1,1e300,99,'x',-5,x'00','','','','','')", "INSERT INTO losses VALUES('x',-5)",
        "UPDATE stretches SET hours_to_ns=9223372036854775807",
        "INSERT INTO tails VALUES(1,-9223372036854775808,9223372036854775807,x'')"}) {
    make_closed();
    sql(text);
    auto reader = RecordingReader::open(file());
    if (reader.ok()) {
      read_all(**reader);
    } else {
      EXPECT_EQ(reader.error().code, ErrorCode::kCorrupt) << text << ": " << reader.error().message;
    }
    fs::remove(file());
  }
}

TEST_F(HostileFile, ADamagedBlockIsSkippedAndCounted) {
  make_closed();
  auto reader = RecordingReader::open(file());
  ASSERT_TRUE(reader.ok());
  const std::size_t whole = read_all(**reader);
  EXPECT_EQ(whole, 6'000U);
  EXPECT_TRUE((*reader)->read_losses()->empty());
  reader->reset();
  sql("UPDATE blocks SET payload=zeroblob(length(payload)) WHERE id=(SELECT min(id) FROM blocks WHERE "
      "id&0xF0000=0x10000)");
  reader = RecordingReader::open(file());
  ASSERT_TRUE(reader.ok());
  const std::size_t left = read_all(**reader);
  EXPECT_LT(left, whole);
  EXPECT_GT(left, 3'000U);
  const auto losses = (*reader)->read_losses();
  ASSERT_EQ(losses->size(), 1U);
  EXPECT_EQ(losses->at(0).counter, "store.blocks_damaged");
  EXPECT_FALSE(losses->at(0).help.empty());
}

TEST_F(HostileFile, TimesThatCannotBeNeverStretchTheExtent) {
  for (const char* text :
       {"UPDATE stretches SET to_ns=9223372036854775807", "UPDATE stretches SET from_ns=-9223372036854775808",
        "UPDATE stretches SET from_ns=to_ns+1,to_ns=to_ns", "UPDATE spans SET end_ns=9223372036854775807",
        "UPDATE spans SET from_ns=-9223372036854775808", "UPDATE stretches SET hours_to_ns=9223372036854775807",
        "INSERT INTO tails VALUES(1,-9223372036854775808,9223372036854775807,x'00')"}) {
    make_closed();
    sql(text);
    auto reader = RecordingReader::open(file());
    ASSERT_TRUE(reader.ok()) << text << ": " << reader.error().message;
    const TimeRange extent = *(*reader)->extent();
    EXPECT_GE(extent.from_ns, 0) << text;
    EXPECT_LE(extent.to_ns, 3'000 * kNsPerS) << text;
    EXPECT_LE(read_all(**reader), 6'000U) << text;
    reader->reset();
    fs::remove(file());
  }
}

TEST_F(HostileFile, SpansThatLastForEverAreNotStored) {
  auto writer = make();
  writer->add_span({.start_ns = INT64_MAX, .duration_ns = 1, .kind = SpanKind::kStep});
  writer->add_span({.start_ns = 1, .duration_ns = INT64_MAX, .kind = SpanKind::kStep});
  writer->add_tick(INT64_MIN, std::vector<Sample>{{{0}, Value::of(1.0)}});
  ASSERT_TRUE(writer->close().ok());
  auto reader = RecordingReader::open(file());
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(read_all(**reader), 6'000U);
  const std::vector<Loss> losses = *(*reader)->read_losses();
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[1].counter, "store.spans_lost");
  EXPECT_EQ(losses[1].count, 2U);
}

TEST_F(HostileFile, CutAtAnyLength) {
  make_closed();
  const auto size = fs::file_size(file());
  std::ifstream in(file(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (std::uintmax_t length = 1; length < size; length += size / 97 + 1) {
    std::ofstream(file(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(length));
    auto reader = RecordingReader::open(file());
    if (reader.ok()) {
      read_all(**reader);
    } else {
      EXPECT_EQ(reader.error().code, ErrorCode::kCorrupt) << reader.error().message;
    }
  }
}

TEST_F(HostileFile, RandomDamage) {
  make_closed();
  std::ifstream in(file(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::mt19937_64 random(9);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    for (std::uint64_t n = random() % 30 + 1; n-- > 0;) {
      // Half of the hits go where SQLite keeps its own structures.
      const std::size_t place =
          random() % 2 == 0 ? random() % bytes.size() : random() % bytes.size() / 1'024 * 1'024 + random() % 40;
      damaged[std::min(place, damaged.size() - 1)] = static_cast<char>(random());
    }
    std::ofstream(file(), std::ios::binary) << damaged;
    auto reader = RecordingReader::open(file());
    if (!reader.ok()) continue;
    // Damage may take samples away, never make some up.
    EXPECT_LE(read_all(**reader), 6'000U);
  }
}

// What a user sees of any single bit that turned: nothing, or one line that names the file, says what is wrong with it
// in words that are not SQLite's, and what to do.
TEST_F(HostileFile, EveryTurnedBitIsToldInOneLine) {
  make_closed();
  std::ifstream in(file(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < 100; ++at) places.push_back(at);  // SQLite's header
  for (std::size_t at = 100; at < bytes.size(); at += at % 1'024 < 40 ? 3 : 251) places.push_back(at);
  int told = 0;
  const auto check = [&](const Error& error, std::size_t at) {
    ++told;
    const std::string where = format("byte {}: {}", at, error.message);
    EXPECT_TRUE(error.message.starts_with(file().string() + ": ")) << where;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << where;
    for (const char* of_sqlite : {"malformed", "disk image", "database", "disk I/O", "not an error", "no such"}) {
      EXPECT_THAT(error.message, ::testing::Not(HasSubstr(of_sqlite))) << where;
    }
    const bool is_other = error.message.find("not a hotlap recording") != std::string::npos;
    const bool has_advice = error.message.find("copy it once more") != std::string::npos ||
                            error.message.find("use the hotlap that recorded it") != std::string::npos;
    EXPECT_TRUE(is_other || has_advice) << where;
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::string damaged = bytes;
    damaged[places[i]] = static_cast<char>(damaged[places[i]] ^ (1 << i % 8));
    std::ofstream(file(), std::ios::binary) << damaged;
    auto reader = RecordingReader::open(file());
    if (!reader.ok()) {
      check(reader.error(), places[i]);
      continue;
    }
    EXPECT_LE(read_all(**reader, [&](const Error& error) { check(error, places[i]); }), 6'000U);
  }
  EXPECT_GT(told, 10);
}

TEST_F(HostileFile, ReadOnlyFolderOfAClosedRecording) {
  make_closed();
  ASSERT_EQ(::chmod(file().c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Root may write anywhere: somebody else is asked.
    if (::geteuid() == 0 && ::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(2);
    auto reader = RecordingReader::open(file());
    ::_exit(reader.ok() && read_all(**reader) == 6'000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HostileFile, ClosedWhileAReaderHadItOpenStaysComplete) {
  auto writer = make();
  ASSERT_TRUE(writer->commit().ok());
  auto reader = RecordingReader::open(file());
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(read_all(**reader), 6'000U);
  ASSERT_TRUE(writer->close().ok());
  writer.reset();
  reader->reset();
  // In WAL mode, with an empty log; on read-only media too.
  ASSERT_EQ(::chmod(file().c_str(), 0444), 0);
  for (const char* suffix : {"-wal", "-shm"}) fs::remove(file().string() + suffix);
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(2);
    auto again = RecordingReader::open(file());
    ::_exit(again.ok() && (*again)->is_closed() && read_all(**again) == 6'000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HostileFile, NoPermissionSaysSo) {
  make_closed();
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(2);
    if (::geteuid() != 65'534) ::_exit(0);  // not root: the file is ours
    auto reader = RecordingReader::open(file());
    ::_exit(!reader.ok() && reader.error().message.find("permission") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HostileFile, ReaderNeverChangesALiveFile) {
  auto writer = make();
  ASSERT_TRUE(writer->commit().ok());
  const auto text = [&](const char* suffix) {
    std::ifstream in(file().string() + suffix, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  };
  const std::string before = text("");
  const std::string wal_before = text("-wal");
  ASSERT_GT(wal_before.size(), 0U);
  {
    auto reader = RecordingReader::open(file());
    ASSERT_TRUE(reader.ok());
    read_all(**reader);
  }
  EXPECT_EQ(text(""), before);
  EXPECT_EQ(text("-wal"), wal_before);
  // The writer died: the same.
  writer.reset();
  {
    auto reader = RecordingReader::open(file());
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(read_all(**reader), 6'000U);
    EXPECT_FALSE((*reader)->is_closed());
  }
  EXPECT_EQ(text(""), before);
  EXPECT_EQ(text("-wal"), wal_before);
}

TEST_F(HostileFile, AFileThatLeadsSqliteInCirclesIsGivenUp) {
  make_closed();
  // Every inner page of the largest table points to itself.
  std::fstream bytes(file(), std::ios::binary | std::ios::in | std::ios::out);
  std::string page(1'024, '\0');
  const auto pages = fs::file_size(file()) / page.size();
  for (std::uintmax_t number = 2; number <= pages; ++number) {
    bytes.seekg(static_cast<std::streamoff>((number - 1) * page.size()));
    bytes.read(page.data(), static_cast<std::streamsize>(page.size()));
    if (page[0] != 5) continue;
    const std::size_t cells = static_cast<unsigned char>(page[4]);
    for (std::size_t c = 0; c <= cells; ++c) {
      const std::size_t pointer = 12 + 2 * c;
      const std::size_t at =
          c == cells ? 8
                     : static_cast<unsigned char>(page[pointer]) * 256U + static_cast<unsigned char>(page[pointer + 1]);
      page[at + 2] = static_cast<char>(number >> 8U);
      page[at + 3] = static_cast<char>(number);
    }
    bytes.seekp(static_cast<std::streamoff>((number - 1) * page.size()));
    bytes.write(page.data(), static_cast<std::streamsize>(page.size()));
  }
  bytes.close();
  auto reader = RecordingReader::open(file());
  if (reader.ok()) {
    EXPECT_LT(read_all(**reader), 6'000U);
  } else {
    EXPECT_EQ(reader.error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(HostileFile, TheLogStaysBounded) {
  WriterOptions options;
  options.wal_pages_max = 64;
  auto writer = RecordingWriter::create(file(), {}, options);
  ASSERT_TRUE(writer.ok());
  const SeriesHandle series = *(*writer)->add_series(kMetric, "");
  std::uintmax_t largest = 0;
  for (std::int64_t tick = 0; tick < 2'000; ++tick) {
    (*writer)->add_tick(tick * kNsPerS, std::vector<Sample>{{series, Value::of(static_cast<std::uint64_t>(tick))}});
    ASSERT_TRUE((*writer)->commit().ok());
    largest = std::max(largest, fs::file_size(file().string() + "-wal"));
  }
  EXPECT_LT(largest, 200U * 1'100U);
}

}  // namespace
}  // namespace hotlap
