#pragma once
// The format of a .hotlap recording: one SQLite database. Version numbers and bounds live here, with their history.
//
//   meta        what the recording is (recording.id, run.id, …), "closed", the host ("attribute.cpu.model"), of imports
//               the byte where a counter of losses first counted ("loss_offset.ingest.events_dropped")
//   metrics     descriptions      series     id = handle, metric, instance      names      interned texts of spans
//   processes   by slot          events · clock · losses        small, one row each
//   stretches   id, from_ns … to_ns of its ticks, samples, tens_to_ns and hours_to_ns (null, or: points of ten minutes,
//               of hours up to here are in the blocks of this stretch and those before), has_days (null or 1)
//   blocks      id = stretch << 20 | kind << 16 | group; first and last series inside; payload
//   tails       one row a commit: the ticks that are in no stretch yet; gone once they are folded
//   spans       id, first and last start, latest end, kinds and names as bit sets, part (1: one commit's few spans,
//               which a block with a higher id will replace); payload
//
// A stretch is up to 2,048 consecutive ticks or 10 minutes of all series:
//
//   second 1 → tail row ┐
//   second 2 → tail row ├─ fold ─► stretch 7 ─┬ block ticks    the times, and which series were sampled when
//   …                   │   (in one           ├ block chunk    values, a column per series
//   second n → tail row ┘  transaction,       ├ block minutes  a point per minute and series
//                          tails deleted)     ├ block tens     a point per ten minutes, of those that have passed
//                                             ├ block hours    a point per hour, of those that have passed
//                                             └ block days     the hours since the days before, once more and together
//
// Each but the first holds a group of 64 series.
//
// Every payload is a sealed block (store/block.h):
//
//   ┌──────────┬───────────┬────────────────┬──────────────┬───────────┐
//   │ kind: u8 │ packed:u8 │ size: varint   │ bytes        │ crc: u32  │   packed 1: bytes are one zstd frame of `size`
//   └──────────┴───────────┴────────────────┴──────────────┴───────────┘   crc over everything before it
//
// Times are CLOCK_MONOTONIC in ns and exact. Integers are little-endian or LEB128 varints; signed ones are
// zigzagged.
//
// Version history
//   1  the first.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hotlap {

inline constexpr std::int64_t kApplicationId = 0x686F7470;  // "hotp"
inline constexpr std::int64_t kFormatVersion = 1;

inline constexpr std::string_view kLossOffsetKey = "loss_offset.";

inline constexpr std::size_t kTicksPerStretchMax = 2048;
inline constexpr std::int64_t kStretchNsMax = 600'000'000'000;
inline constexpr std::uint32_t kSeriesPerChunk = 64;
inline constexpr std::size_t kHoursPerDaysBlock = 24;
inline constexpr std::uint32_t kSeriesMax = 65'535 * kSeriesPerChunk;  // 16 bits of group in a block's id
inline constexpr std::size_t kSpansPerBlockMax = 4096;
inline constexpr std::size_t kBlockBytesMax = std::size_t{16} << 20U;  // unpacked; refused beyond
inline constexpr std::size_t kStoredTextBytesMax = std::size_t{1} << 20U;

// A hundred years: no clock of ours is further from 0 (Unix time of importers is half of it). What says so was not
// written by us; sums of two such times fit in 64 bits.
inline constexpr std::int64_t kTimeNsMax = 3'155'760'000'000'000'000;

inline constexpr std::int64_t kMinuteNs = 60'000'000'000;
inline constexpr std::int64_t kTenMinutesNs = 600'000'000'000;
inline constexpr std::int64_t kHourNs = 3'600'000'000'000;

// Stored as one byte: append only.
enum class BlockKind : std::uint8_t {
  kTicks = 0,
  kChunk = 1,
  kMinutes = 2,
  kTens = 3,
  kHours = 4,
  kDays = 5,  // hours, as kHours
  kTail = 6,
  kSpans = 7
};

constexpr std::int64_t block_id(std::int64_t stretch, BlockKind kind, std::uint32_t group) {
  return (stretch << 20U) | (std::int64_t{static_cast<std::uint8_t>(kind)} << 16U) | group;
}
inline constexpr std::int64_t kStretchIdMax = (std::int64_t{1} << 42U) - 1;

// The schema of version 1: name and text of every table, as SQLite stores them. A file with anything else (a view,
// a trigger, another text) is refused.
struct TableText {
  std::string_view name;
  std::string_view sql;
};
inline constexpr std::array kTables{
    TableText{"meta", "CREATE TABLE meta(key TEXT PRIMARY KEY,text TEXT NOT NULL) WITHOUT ROWID"},
    TableText{"metrics",
              "CREATE TABLE metrics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,unit TEXT NOT NULL,kind INTEGER NOT NULL,"
              "scale REAL NOT NULL,window_ns INTEGER NOT NULL,min_period_ns INTEGER NOT NULL)"},
    TableText{"series", "CREATE TABLE series(id INTEGER PRIMARY KEY,metric INTEGER NOT NULL,instance TEXT NOT NULL)"},
    TableText{"names", "CREATE TABLE names(id INTEGER PRIMARY KEY,text TEXT NOT NULL)"},
    TableText{"processes",
              "CREATE TABLE processes(slot INTEGER PRIMARY KEY,pid INTEGER NOT NULL,role INTEGER NOT NULL,"
              "number INTEGER NOT NULL,parent INTEGER NOT NULL,label TEXT NOT NULL,start_ns INTEGER NOT NULL,end_ns "
              "INTEGER NOT NULL,command "
              "TEXT NOT NULL,"
              "has_hook INTEGER NOT NULL,hook_absent_reason TEXT NOT NULL)"},
    TableText{"events",
              "CREATE TABLE events(id INTEGER PRIMARY KEY,t_ns INTEGER NOT NULL,kind INTEGER NOT NULL,"
              "value INTEGER NOT NULL,text TEXT NOT NULL)"},
    TableText{"clock",
              "CREATE TABLE clock(id INTEGER PRIMARY KEY,mono_ns INTEGER NOT NULL,wall_ns INTEGER NOT NULL,"
              "boot_ns INTEGER NOT NULL)"},
    TableText{"losses", "CREATE TABLE losses(counter TEXT PRIMARY KEY,count INTEGER NOT NULL) WITHOUT ROWID"},
    TableText{"stretches",
              "CREATE TABLE stretches(id INTEGER PRIMARY KEY,from_ns INTEGER NOT NULL,to_ns INTEGER NOT NULL,"
              "samples INTEGER NOT NULL,tens_to_ns INTEGER,hours_to_ns INTEGER,has_days INTEGER)"},
    TableText{"blocks",
              "CREATE TABLE blocks(id INTEGER PRIMARY KEY,first_series INTEGER NOT NULL,last_series INTEGER NOT NULL,"
              "payload BLOB NOT NULL)"},
    TableText{"tails",
              "CREATE TABLE tails(id INTEGER PRIMARY KEY,from_ns INTEGER NOT NULL,to_ns INTEGER NOT NULL,"
              "payload BLOB NOT NULL)"},
    TableText{"spans",
              "CREATE TABLE spans(id INTEGER PRIMARY KEY,count INTEGER NOT NULL,from_ns INTEGER NOT NULL,"
              "to_ns INTEGER NOT NULL,end_ns INTEGER NOT NULL,kinds INTEGER NOT NULL,names INTEGER NOT NULL,"
              "payload BLOB NOT NULL)"},
};

}  // namespace hotlap
