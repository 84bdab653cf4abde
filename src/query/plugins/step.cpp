// Training steps, put together from spans as the analysis does it.
#include <array>

#include "analysis/recorded_steps.h"
#include "base/clock.h"
#include "base/format.h"
#include "query/table.h"

namespace hotlap {
namespace {

constexpr std::array kColumns{
    ColumnDesc{"step", ColumnType::kInteger, "its number within the process, from 0"},
    ColumnDesc{"process", ColumnType::kText, "'main', 'rank 2'"},
    ColumnDesc{"rank", ColumnType::kInteger, "NULL: not distributed"},
    ColumnDesc{"start_s", ColumnType::kReal, "seconds since the run's first sample"},
    ColumnDesc{"start_ns", ColumnType::kInteger, "the recording's monotonic clock", ColumnFilter::kTime},
    ColumnDesc{"ms", ColumnType::kReal, "how long it took"},
    ColumnDesc{"data_wait_ms", ColumnType::kReal, "of it: waiting for the loader; NULL here and below: not measured"},
    ColumnDesc{"forward_ms", ColumnType::kReal, ""},
    ColumnDesc{"backward_ms", ColumnType::kReal, ""},
    ColumnDesc{"optimizer_ms", ColumnType::kReal, ""},
    ColumnDesc{"communication_ms", ColumnType::kReal, ""},
    ColumnDesc{"checkpoint_ms", ColumnType::kReal, ""},
    ColumnDesc{"gc_ms", ColumnType::kReal, ""},
    ColumnDesc{"compile_ms", ColumnType::kReal, ""},
    ColumnDesc{"evaluation_ms", ColumnType::kReal, ""},
    ColumnDesc{"hook_ms", ColumnType::kReal, "hotlap's own"},
    ColumnDesc{"loader_start_ms", ColumnType::kReal, "of data_wait_ms: making an iterator of the loader"},
    ColumnDesc{"batches", ColumnType::kInteger, "taken from the loader; NULL: not known"},
    ColumnDesc{"samples", ColumnType::kInteger, "NULL: not known"},
    ColumnDesc{"tokens", ColumnType::kInteger, "NULL: not known"},
    ColumnDesc{"inferred", ColumnType::kInteger, "1: cut by the loader's cadence, not by a marker"},
    ColumnDesc{"hooked", ColumnType::kInteger, "0: not its turn to be looked into"},
    ColumnDesc{"profiled", ColumnType::kInteger,
               "1: slower by the framework's profiler or a pause for it; no statistics are made of it"},
    ColumnDesc{"node", ColumnType::kText, "", ColumnFilter::kEquals},
    ColumnDesc{"recording", ColumnType::kInteger, "number of the recording, from 1"},
};
constexpr std::size_t kNodeColumn = 23;
constexpr std::size_t kStepsMax = 1'000'000;  // of one recording, in memory

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }
Cell part(std::optional<std::int64_t> ns) { return ns ? Cell(ms(*ns)) : Cell(); }
Cell known(std::int64_t count) { return count >= 0 ? Cell(count) : Cell(); }

class Rows final : public RowSource {
 public:
  Rows(QueriedRun& run, RowFilter filter) : run_(run), filter_(std::move(filter)) {}

  std::span<const Cell> row() const override { return cells_; }

  Result<bool> next() override {
    while (true) {
      while (at_ < steps_.size()) {
        const Step& step = steps_[at_++];
        if (step.start_ns < filter_.time.from_ns || step.start_ns >= filter_.time.to_ns) continue;
        show(step);
        return true;
      }
      if (next_recording_ >= run_.recordings().size()) return false;
      recording_ = &run_.recordings()[next_recording_++];
      HOTLAP_TRY(build());
    }
  }

 private:
  Result<void> build() {
    steps_.clear();
    at_ = 0;
    if (!filter_.wants(kNodeColumn, recording_->node)) return {};
    bool is_full = false;
    HOTLAP_TRY(read_steps(*recording_->reader, [&](const Step& step) {
      if (steps_.size() < kStepsMax) {
        steps_.push_back(step);
      } else {
        is_full = true;
      }
    }));
    if (is_full) {
      return Error{ErrorCode::kResourceLimit,
                   format("more than {} steps in a recording: ask the table span", kStepsMax)};
    }
    return {};
  }

  void show(const Step& step) {
    cells_.clear();
    cells_.emplace_back(step.index);
    const auto found = recording_->processes.find(step.process);
    label_ = found == recording_->processes.end() ? std::string() : slot_label(found->second);
    cells_.push_back(label_.empty() ? Cell() : Cell(std::string_view(label_)));
    cells_.push_back(known(step.rank));
    cells_.emplace_back(recording_->seconds(step.start_ns));
    cells_.emplace_back(step.start_ns);
    cells_.emplace_back(ms(step.duration_ns));
    for (const auto& ns :
         {step.data_wait_ns, step.forward_ns, step.backward_ns, step.optimizer_ns, step.communication_ns,
          step.checkpoint_ns, step.gc_ns, step.compile_ns, step.evaluation_ns, step.hook_ns, step.loader_start_ns}) {
      cells_.push_back(part(ns));
    }
    cells_.push_back(known(step.batches));
    cells_.push_back(known(step.samples));
    cells_.push_back(known(step.tokens));
    cells_.emplace_back(std::int64_t{step.is_inferred});
    cells_.emplace_back(std::int64_t{step.is_hooked});
    cells_.emplace_back(std::int64_t{step.is_profiled});
    cells_.emplace_back(std::string_view(recording_->node));
    cells_.emplace_back(recording_->number);
  }

  QueriedRun& run_;
  RowFilter filter_;
  std::size_t next_recording_ = 0;
  const QueriedRecording* recording_ = nullptr;
  std::vector<Step> steps_;  // of one recording
  std::size_t at_ = 0;
  std::string label_;
  std::vector<Cell> cells_;
};

Result<std::unique_ptr<RowSource>> open(QueriedRun& run, const RowFilter& filter) {
  return std::unique_ptr<RowSource>(new Rows(run, filter));
}

}  // namespace

extern constinit const TableSpec table_step{
    .name = "step", .help = "training steps with their parts, of every rank", .columns = kColumns, .open = open};

}  // namespace hotlap
