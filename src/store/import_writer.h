#pragma once
// The store's end of an import: sorts what an importer pushes and writes one recording, once. Spans that do not fit in
// memory are sorted in runs, spilled to a file that nobody else sees, and merged at close(). Confined to one thread.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ingest/importer.h"
#include "model/run.h"
#include "store/recording_reader.h"
#include "store/recording_writer.h"

namespace hotlap {

struct ImportWriterOptions {
  std::size_t spans_in_memory = std::size_t{512} << 10;    // 28 MiB, and half of that to sort them
  std::size_t samples_in_memory = std::size_t{512} << 10;  // 24 MiB; file times must grow from one such lot to the next
  // Free space of the folder below which nothing more is spilled or written; what does not fit is counted.
  std::uint64_t free_bytes_floor = 64ULL << 20U;
  std::string main_label;       // of a training process whose rank is not known, where a run has several files
  std::int32_t main_rank = -1;  // what the file's name says of it; -1: nothing
  std::int64_t shift_ns = 0;    // added to all times beside the file's own offset
  bool is_absolute = false;     // with that the times are Unix time, whatever the file says
};

class ImportWriter final : public ImportSink {
 public:
  // As RecordingWriter::create; the spill file is made in the folder of `path` and has no name.
  static Result<std::unique_ptr<ImportWriter>> create(const std::filesystem::path& path, const RecordingInfo& info,
                                                      ImportWriterOptions options);
  ~ImportWriter() override;
  ImportWriter(const ImportWriter&) = delete;
  ImportWriter& operator=(const ImportWriter&) = delete;

  void clock(const ImportClock& clock) override { clock_ = clock; }
  SeriesHandle series(const MetricDesc& metric, std::string_view instance) override;
  void sample(SeriesHandle series, std::int64_t t_ns, Value value) override;
  std::uint32_t name(std::string_view text) override { return writer_->add_name(text); }
  std::uint32_t process(const ProcessInfo& process) override;
  void span(const Span& span) override {
    spans_.push_back(span);
    if (spans_.size() >= options_.spans_in_memory) spill();
  }
  void event(const Event& event) override;
  void attribute(std::string_view key, std::string_view value) override { writer_->put_attribute(key, value); }
  void count_loss(std::string_view counter, std::uint64_t count, std::int64_t byte_offset) override;
  void at(std::int64_t byte_offset) override { input_offset_ = byte_offset; }

  // Merges, writes, closes. What could not be stored has been counted; kIo when the disk refuses. Nothing may be pushed
  // afterwards.
  Result<void> close();
  // After close(): first and last time of spans and samples; Unix time when `is_absolute()`.
  const std::optional<TimeRange>& extent() const { return extent_; }
  // The same of its events.
  const std::optional<TimeRange>& extent_of_events() const { return extent_of_events_; }
  bool is_absolute() const { return clock_.is_absolute || options_.is_absolute; }
  const ImportClock& file_clock() const { return clock_; }
  std::uint64_t spans_written() const { return spans_written_; }

 private:
  struct Block {
    std::int64_t offset;  // in the spill file
    std::uint32_t bytes;
    std::uint32_t count;
  };
  using SortedRun = std::vector<Block>;
  struct TimedSample {
    std::int64_t t_ns;
    SeriesHandle series;
    Value value;
    std::int64_t input_offset;
  };
  class RunCursor;

  ImportWriter(std::filesystem::path folder, std::unique_ptr<RecordingWriter> writer, ImportWriterOptions options)
      : folder_(std::move(folder)), writer_(std::move(writer)), options_(std::move(options)) {}

  void sort_spans();
  void spill();
  Result<void> write_run(SortedRun& run);
  bool has_room() const;
  void flush_samples();
  void write_ticks();
  void store(Span span);
  Result<void> store_spans();
  Result<void> merge_runs();
  void commit();
  std::int64_t shifted(std::int64_t t_ns) const;
  void reach(std::int64_t from_ns, std::int64_t to_ns);

  std::filesystem::path folder_;
  std::unique_ptr<RecordingWriter> writer_;
  ImportWriterOptions options_;
  ImportClock clock_;
  std::int64_t input_offset_ = -1;  // of what is pushed

  std::vector<Span> spans_;
  std::vector<std::uint32_t> order_;  // of spans_, by time
  std::vector<SortedRun> runs_;
  int spill_fd_ = -1;
  std::int64_t spill_bytes_ = 0;
  bool is_spill_refused_ = false;
  Bytes encoded_;

  std::vector<TimedSample> samples_;
  std::vector<std::int64_t> last_sample_ns_;  // by series, file time
  std::vector<Sample> tick_;
  std::vector<Event> events_;
  std::vector<ProcessInfo> processes_;
  struct LossCount {
    std::uint64_t count = 0;
    std::int64_t first_offset = -1;
  };
  std::map<std::string, LossCount, std::less<>> losses_;

  std::uint64_t spans_written_ = 0;
  std::uint64_t spans_uncommitted_ = 0;
  std::optional<TimeRange> extent_;
  std::optional<TimeRange> extent_of_events_;
  Result<void> failure_;  // of the first commit that failed
};

}  // namespace hotlap
