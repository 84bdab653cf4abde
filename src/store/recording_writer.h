#pragma once
// Writes one recording: a .hotlap file (SQLite) that belongs to one recorder on one node. The format is drawn in
// store/format.h. A recorder that starts again makes a new recording; an old file is never written again.
//
// What is promised: after commit() returns, everything added before it survives kill -9 of this process; between
// commits at most what came since the last one is lost. A power cut may take the last minutes, never the file. A
// failing disk loses data in memory order, counts it (store.samples_lost, store.spans_lost, store.events_lost), and
// never blocks the caller for longer than one commit. Nothing is written before commit(): who adds without
// committing fills memory up to WriterOptions::pending_bytes_max and then loses the oldest; importers commit every
// 64 Ki spans or so. Confined to one thread.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "model/event.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/run.h"
#include "model/sink.h"
#include "model/span.h"

namespace hotlap {

// A value of one series within a tick.
struct Sample {
  SeriesHandle series;
  Value value;
};

struct WriterOptions {
  std::uint32_t series_max = 20'000;          // add_series answers kResourceLimit beyond
  std::size_t pending_bytes_max = 8U << 20U;  // what may wait in memory while the disk fails
  // Free space below which nothing more is written (counted), so that the job's own disk is not filled by us.
  std::uint64_t free_bytes_floor = 64ULL << 20U;
  std::uint32_t wal_pages_max = 2'048;  // of 1 KiB: then the write-ahead log is moved into the file
  const char* vfs = nullptr;            // SQLite VFS by name: fault injection in tests
};

class RecordingWriter {
 public:
  // Creates `path` (0600; must not exist). kIo when the folder cannot be written.
  static Result<std::unique_ptr<RecordingWriter>> create(const std::filesystem::path& path, const RecordingInfo& info,
                                                         const WriterOptions& options);
  // Without close(): like kill -9, what was not committed is lost.
  virtual ~RecordingWriter() = default;

  // The series' description is copied. (metric name, instance) is unique: the same pair gives the same handle.
  virtual Result<SeriesHandle> add_series(const MetricDesc& metric, std::string_view instance) = 0;
  // One tick: one time, any subset of the series, each at most once. The times of one series grow; ticks of another
  // lane (a slow collector) may lie between. What breaks this is dropped and counted as collect.duplicates; so is a
  // tick more than 100 years from 0.
  virtual void add_tick(std::int64_t t_ns, std::span<const Sample> samples) = 0;
  virtual std::uint32_t add_name(std::string_view text) = 0;  // interned; from 1
  virtual void add_span(const Span& span) = 0;  // one more than 100 years from 0 or long is counted as store.spans_lost
  virtual void add_event(const Event& event) = 0;
  virtual void add_clock(const ClockReading& reading) = 0;
  virtual void put_process(const ProcessInfo& process) = 0;                     // inserts or replaces by slot
  virtual void put_attribute(std::string_view key, std::string_view text) = 0;  // inserts or replaces
  virtual void add_loss(std::string_view counter, std::uint64_t count) = 0;     // adds to the named counter

  // Makes everything safe against kill -9 (once a second).
  // An error has been counted already; the data stays pending within its bound and the next commit tries again.
  virtual Result<void> commit() = 0;
  // Folds, writes tiers, closes as one self-contained file (journal_mode=DELETE; where a reader has the file open,
  // it stays in WAL mode with an empty log, which is as complete). Nothing may be added afterwards. After an error
  // what was committed stays readable.
  virtual Result<void> close() = 0;
  // Size on disk, with the write-ahead log.
  virtual std::uint64_t bytes_written() const = 0;
  // Byte of the imported file where a counter first counted.
  virtual void put_loss_offset(std::string_view counter, std::int64_t first_offset) = 0;
};

// Makes one self-contained file of a recording whose recorder was killed: moves the log into it. kCancelled while
// somebody has it open. Does nothing to a closed one.
Result<void> settle_recording(const std::filesystem::path& path);

}  // namespace hotlap
