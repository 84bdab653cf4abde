#include "store/import_writer.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <queue>
#include <utility>

#include "base/format.h"
#include "store/span_block.h"

namespace hotlap {
namespace {

constexpr std::size_t kSpansPerSpillBlock = 1024;
constexpr std::size_t kRunsMax = 1024;  // each is read through a block of its own: 57 MiB
constexpr std::size_t kEventsMax = std::size_t{64} << 10;
constexpr std::uint64_t kSpansPerCommit = std::uint64_t{64} << 10;
constexpr std::size_t kProcessesMax = 8192;
constexpr unsigned kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// By start; of two that begin together the longer one first, so that what holds others stands before them.
bool comes_before(const Span& a, const Span& b) {
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  const auto length = [](const Span& span) { return span.duration_ns < 0 ? INT64_MAX : span.duration_ns; };
  return length(a) > length(b);
}

// Numbers of `spans` by start, by radix: several times as fast as comparing.
void order_by_start(const std::vector<Span>& spans, std::vector<std::uint32_t>& order) {
  struct Key {
    std::uint64_t start;
    std::uint32_t index;
  };
  std::int64_t least = INT64_MAX;
  std::int64_t most = INT64_MIN;
  for (const Span& span : spans) {
    least = std::min(least, span.start_ns);
    most = std::max(most, span.start_ns);
  }
  std::vector<Key> keys(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    keys[i] = {static_cast<std::uint64_t>(spans[i].start_ns) - static_cast<std::uint64_t>(least),
               static_cast<std::uint32_t>(i)};
  }
  std::vector<Key> sorted(spans.size());
  const std::uint64_t range = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  for (unsigned shift = 0; shift < 64 && (range >> shift) != 0; shift += kDigitBits) {
    std::array<std::uint32_t, kDigits + 1> begin{};
    for (const Key& key : keys) ++begin[((key.start >> shift) & (kDigits - 1)) + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    for (const Key& key : keys) sorted[begin[(key.start >> shift) & (kDigits - 1)]++] = key;
    keys.swap(sorted);
  }
  order.resize(spans.size());
  for (std::size_t i = 0; i < keys.size(); ++i) order[i] = keys[i].index;
}

}  // namespace

// Reads one spilled run, block by block.
class ImportWriter::RunCursor {
 public:
  RunCursor(int fd, const SortedRun& blocks) : fd_(fd), blocks_(blocks) {}

  // The next span; false at the end of the run, or when the spill file cannot be read.
  bool next(Span& out) {
    if (at_ == spans_.size() && !load()) return false;
    out = spans_[at_++];
    return true;
  }
  std::uint64_t lost() const { return lost_; }

 private:
  bool load() {
    at_ = 0;
    spans_.clear();
    while (block_ < blocks_.size()) {
      const Block& block = blocks_[block_++];
      bytes_.resize(block.bytes);
      const ::ssize_t n = ::pread(fd_, bytes_.data(), block.bytes, block.offset);
      if (n == static_cast<::ssize_t>(block.bytes) && decode_spans(bytes_, spans_)) return true;
      lost_ += block.count;
      spans_.clear();
    }
    return false;
  }

  int fd_;
  const SortedRun& blocks_;
  std::size_t block_ = 0;
  std::vector<Span> spans_;
  std::size_t at_ = 0;
  Bytes bytes_;
  std::uint64_t lost_ = 0;
};

Result<std::unique_ptr<ImportWriter>> ImportWriter::create(const std::filesystem::path& path, const RecordingInfo& info,
                                                           ImportWriterOptions options) {
  HOTLAP_TRY_ASSIGN(std::unique_ptr<RecordingWriter> writer,
                    RecordingWriter::create(path, info, {.free_bytes_floor = options.free_bytes_floor}));
  return std::unique_ptr<ImportWriter>(
      new ImportWriter(std::filesystem::absolute(path).parent_path(), std::move(writer), std::move(options)));
}

ImportWriter::~ImportWriter() {
  if (spill_fd_ >= 0) ::close(spill_fd_);
}

SeriesHandle ImportWriter::series(const MetricDesc& metric, std::string_view instance) {
  const Result<SeriesHandle> handle = writer_->add_series(metric, instance);
  if (!handle.ok()) return {};
  if (handle->index >= last_sample_ns_.size()) last_sample_ns_.resize(handle->index + 1, INT64_MIN);
  return *handle;
}

void ImportWriter::sample(SeriesHandle series, std::int64_t t_ns, Value value) {
  if (!series.valid()) return count_loss("record.series_refused", 1, input_offset_);
  samples_.push_back({t_ns, series, value, input_offset_});
  if (samples_.size() >= options_.samples_in_memory) flush_samples();
}

std::uint32_t ImportWriter::process(const ProcessInfo& process) {
  ProcessInfo kept = process;
  if (kept.role == ProcessRole::kMain && options_.main_rank >= 0) {
    kept.role = ProcessRole::kRank;
    kept.index = options_.main_rank;
  }
  if (kept.role == ProcessRole::kMain && kept.label.empty()) kept.label = options_.main_label;
  if (kept.slot == 0) {
    if (processes_.size() >= kProcessesMax) {
      count_loss("record.processes_refused", 1, input_offset_);
      return 0;
    }
    kept.slot = static_cast<std::uint32_t>(processes_.size() + 1);
    processes_.push_back(kept);
  } else if (kept.slot <= processes_.size()) {
    processes_[kept.slot - 1] = kept;
  }
  return kept.slot;
}

void ImportWriter::event(const Event& event) {
  if (events_.size() >= kEventsMax) return count_loss("store.events_lost", 1, input_offset_);
  events_.push_back(event);
}

void ImportWriter::count_loss(std::string_view counter, std::uint64_t count, std::int64_t byte_offset) {
  if (count == 0) return;
  auto found = losses_.find(counter);
  if (found == losses_.end()) found = losses_.emplace(std::string(counter), LossCount{}).first;
  LossCount& loss = found->second;
  loss.count += count;
  if (byte_offset >= 0 && (loss.first_offset < 0 || byte_offset < loss.first_offset)) loss.first_offset = byte_offset;
}

std::int64_t ImportWriter::shifted(std::int64_t t_ns) const {
  std::int64_t sum = 0;
  const bool is_beyond =
      __builtin_add_overflow(t_ns, clock_.offset_ns, &sum) || __builtin_add_overflow(sum, options_.shift_ns, &sum);
  return is_beyond ? INT64_MAX : sum;  // which is refused and counted
}

void ImportWriter::reach(std::int64_t from_ns, std::int64_t to_ns) {
  if (!extent_) extent_ = TimeRange{from_ns, to_ns};
  extent_->from_ns = std::min(extent_->from_ns, from_ns);
  extent_->to_ns = std::max(extent_->to_ns, to_ns);
}

void ImportWriter::commit() {
  spans_uncommitted_ = 0;
  if (Result<void> done = writer_->commit(); !done.ok() && failure_.ok()) failure_ = std::move(done);
}

void ImportWriter::sort_spans() {
  if (std::is_sorted(spans_.begin(), spans_.end(), comes_before)) {
    order_.resize(spans_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    return;
  }
  order_by_start(spans_, order_);
  for (std::size_t begin = 0; begin < order_.size();) {
    std::size_t end = begin + 1;
    while (end < order_.size() && spans_[order_[end]].start_ns == spans_[order_[begin]].start_ns) ++end;
    if (end - begin > 1) {
      std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(begin),
                       order_.begin() + static_cast<std::ptrdiff_t>(end),
                       [this](std::uint32_t a, std::uint32_t b) { return comes_before(spans_[a], spans_[b]); });
    }
    begin = end;
  }
}

bool ImportWriter::has_room() const {
  struct statvfs space {};
  if (::statvfs(folder_.c_str(), &space) != 0) return false;
  return std::uint64_t{space.f_bavail} * space.f_frsize > options_.free_bytes_floor;
}

void ImportWriter::spill() {
  if (spans_.empty()) return;
  if (!is_spill_refused_) {
    is_spill_refused_ = runs_.size() >= kRunsMax || !has_room();
    if (!is_spill_refused_) {
      sort_spans();
      SortedRun run;
      is_spill_refused_ = !write_run(run).ok();
      if (!is_spill_refused_) runs_.push_back(std::move(run));
    }
  }
  if (is_spill_refused_) count_loss("store.spans_lost", spans_.size(), -1);
  spans_.clear();
}

Result<void> ImportWriter::write_run(SortedRun& run) {
  if (spill_fd_ < 0) {
    std::string name = (folder_ / "spill-XXXXXX").string();
    spill_fd_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (spill_fd_ < 0) return errno_error(format("{}: cannot be made", name), errno);
    ::unlink(name.c_str());
  }
  std::vector<Span> lot;
  for (std::size_t begin = 0; begin < order_.size(); begin += kSpansPerSpillBlock) {
    const std::size_t end = std::min(begin + kSpansPerSpillBlock, order_.size());
    lot.clear();
    for (std::size_t i = begin; i < end; ++i) lot.push_back(spans_[order_[i]]);
    encoded_.clear();
    encode_spans(lot, encoded_);
    if (::pwrite(spill_fd_, encoded_.data(), encoded_.size(), spill_bytes_) !=
        static_cast<::ssize_t>(encoded_.size())) {
      return errno_error("cannot spill", errno);
    }
    run.push_back({spill_bytes_, static_cast<std::uint32_t>(encoded_.size()), static_cast<std::uint32_t>(lot.size())});
    spill_bytes_ += static_cast<std::int64_t>(encoded_.size());
  }
  return {};
}

void ImportWriter::store(Span span) {
  span.start_ns = shifted(span.start_ns);
  if (span.start_ns != INT64_MAX) reach(span.start_ns, span.start_ns + std::max<std::int64_t>(span.duration_ns, 0));
  writer_->add_span(span);
  ++spans_written_;
  if (++spans_uncommitted_ >= kSpansPerCommit) commit();
}

Result<void> ImportWriter::store_spans() {
  if (!runs_.empty()) {
    spill();
    return merge_runs();
  }
  sort_spans();
  for (const std::uint32_t index : order_) store(spans_[index]);
  return {};
}

Result<void> ImportWriter::merge_runs() {
  struct Head {
    Span span;
    std::size_t run;
  };
  const auto is_later = [](const Head& a, const Head& b) { return comes_before(b.span, a.span); };
  std::priority_queue<Head, std::vector<Head>, decltype(is_later)> heads(is_later);
  std::vector<RunCursor> cursors;
  cursors.reserve(runs_.size());
  for (const SortedRun& run : runs_) {
    cursors.emplace_back(spill_fd_, run);
    Head head{.span = {}, .run = cursors.size() - 1};
    if (cursors.back().next(head.span)) heads.push(head);
  }
  while (!heads.empty()) {
    Head head = heads.top();
    heads.pop();
    // Runs mostly do not overlap: as long as this one is ahead of all others it needs no queue.
    while (true) {
      store(head.span);
      if (!cursors[head.run].next(head.span)) break;
      if (!heads.empty() && comes_before(heads.top().span, head.span)) {
        heads.push(head);
        break;
      }
    }
  }
  for (const RunCursor& cursor : cursors) count_loss("store.spans_lost", cursor.lost(), -1);
  return {};
}

void ImportWriter::flush_samples() {
  std::stable_sort(samples_.begin(), samples_.end(),
                   [](const TimedSample& a, const TimedSample& b) { return a.t_ns < b.t_ns; });
  write_ticks();
  samples_.clear();
}

void ImportWriter::write_ticks() {
  std::uint64_t ticks = 0;
  for (std::size_t begin = 0; begin < samples_.size();) {
    tick_.clear();
    std::size_t end = begin;
    for (; end < samples_.size() && samples_[end].t_ns == samples_[begin].t_ns; ++end) {
      const TimedSample& one = samples_[end];
      std::int64_t& last = last_sample_ns_[one.series.index];
      if (one.t_ns <= last) {
        count_loss("ingest.samples_out_of_order", 1, one.input_offset);
        continue;
      }
      last = one.t_ns;
      tick_.push_back({one.series, one.value});
    }
    if (!tick_.empty()) {
      const std::int64_t t_ns = shifted(samples_[begin].t_ns);
      writer_->add_tick(t_ns, tick_);
      if (t_ns != INT64_MAX) reach(t_ns, t_ns);
      constexpr std::uint64_t kTicksPerCommit = 1024;
      if (++ticks % kTicksPerCommit == 0) commit();
    }
    begin = end;
  }
}

Result<void> ImportWriter::close() {
  flush_samples();
  HOTLAP_TRY(store_spans());
  for (Event event : events_) {
    event.t_ns = shifted(event.t_ns);
    writer_->add_event(event);
    if (!extent_of_events_) extent_of_events_ = TimeRange{event.t_ns, event.t_ns};
    extent_of_events_->from_ns = std::min(extent_of_events_->from_ns, event.t_ns);
    extent_of_events_->to_ns = std::max(extent_of_events_->to_ns, event.t_ns);
  }
  for (const ProcessInfo& process : processes_) writer_->put_process(process);
  if (is_absolute() && extent_) {
    writer_->add_clock({.mono_ns = extent_->from_ns, .wall_ns = extent_->from_ns, .boot_ns = extent_->from_ns});
  }
  for (const auto& [counter, loss] : losses_) {
    writer_->add_loss(counter, loss.count);
    if (loss.first_offset >= 0) writer_->put_loss_offset(counter, loss.first_offset);
  }
  HOTLAP_TRY(writer_->close());
  return failure_;
}

}  // namespace hotlap
