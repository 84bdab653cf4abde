#pragma once
// Chrome trace events to spans, samples and processes. Knows the categories of Kineto, old and new, of the legacy
// autograd profiler and of ROCm; what has no category of theirs is an operator of its process. Bounded memory:
// kLanesMax threads, kOpenMax open begins each, kAsyncMax open asynchronous ones, kNamesMax different names.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ingest/importer.h"
#include "ingest/launch_order.h"
#include "ingest/named_processes.h"
#include "ingest/text_table.h"
#include "ingest/trace_details.h"
#include "ingest/trace_event.h"
#include "ingest/trace_names.h"
#include "ingest/trace_reader.h"
#include "ingest/trace_series.h"

namespace hotlap {

class TraceAssembler final : public TraceReader::Handler {
 public:
  static constexpr std::size_t kLanesMax = 16'384;
  static constexpr std::size_t kOpenMax = 512;
  static constexpr std::size_t kAsyncMax = 65'536;
  static constexpr std::size_t kNamesMax = 500'000;
  static constexpr std::size_t kNameBytesMax = std::size_t{48} << 20;

  explicit TraceAssembler(ImportSink& out) : out_(out), details_(out), series_(out) {}

  void on_document() override;
  void on_event(const TraceEvent& event, std::int64_t offset) override;
  void on_member(std::string_view key, std::string_view value) override;
  void on_loss(std::string_view counter, std::int64_t offset) override { count(counter, 1, offset); }
  // After the last event: what is open, processes, clock, losses.
  void finish();

  std::uint64_t events() const { return events_; }
  // Whether there is anything but descriptions of processes among them.
  bool has_content() const { return events_ > metadata_; }
  std::uint64_t events_unread() const;  // dropped, for whatever reason
  // Keys of the document beside the events: what it is when it is no trace.
  const std::vector<std::string>& members() const { return members_; }

 private:
  enum class Source : std::uint8_t {
    kOperator,
    kAnnotation,
    kRuntime,
    kKernel,
    kCopy,
    kFunction,
    kDeviceAnnotation,
    kStep,  // of a device's line of them
    kHostOfXla,
    kSkipped,
  };
  struct Open {
    std::int64_t start_ns;
    std::uint32_t name;  // in names_
    Source source;
    std::int64_t step;
    std::int64_t offset;
  };
  struct Lane {
    std::uint32_t slot = 0;
    std::uint32_t thread = 0;
    std::vector<Open> open;
  };
  struct Name {
    std::uint32_t id = 0;  // at the sink
    NamedMeaning meaning;
    SpanKind label_kind = SpanKind::kUser;
    bool is_repaired = false;
  };
  struct Process {
    ProcessInfo info;
    std::string text;  // its "pid"
    bool is_device = false;
    std::uint64_t spans = 0;
    std::uint64_t steps = 0;
  };
  struct Async {
    Open open;
    std::uint32_t lane;
  };

  static Source source_of(std::string_view category);
  Source source_of(const TraceEvent& event) const;
  const Name& name_of(const TraceEvent& event, std::int64_t offset);
  std::uint32_t detail_of(const TraceEvent& event, std::int64_t offset);
  std::uint32_t lane_of(const TraceEvent& event, bool is_device);
  std::uint32_t process_of(std::string_view text, bool is_device);
  bool is_time(const TraceEvent& event, std::int64_t offset);
  void settle_times();
  std::int64_t duration_of(const TraceEvent& event, std::int64_t offset);
  void on_complete(const TraceEvent& event, std::int64_t offset);
  void on_step(const TraceEvent& event, std::int64_t offset);
  std::uint32_t host_of_xla(const TraceEvent& event);
  void on_begin(const TraceEvent& event, std::int64_t offset);
  void on_end(const TraceEvent& event, std::int64_t offset);
  void on_async(const TraceEvent& event, bool is_begin, std::int64_t offset);
  void on_instant(const TraceEvent& event, std::int64_t offset);
  void on_counter(const TraceEvent& event, std::int64_t offset);
  void on_metadata(const TraceEvent& event);
  void give(Span span, Source source, const Name& name, std::uint32_t process, std::int64_t offset);
  void check_launch(const TraceEvent& event, Source source, std::int64_t offset);
  void give_open(const Open& open, const Lane& lane, std::int64_t duration_ns);
  void count(std::string_view counter, std::uint64_t n, std::int64_t offset);
  void keep_stage(const TraceEvent& event);
  void set_roles();
  void set_stages();
  bool set_ranks_by_name();
  void set_clock();

  ImportSink& out_;
  std::uint64_t events_ = 0;
  std::uint64_t metadata_ = 0;
  TextTable name_table_{kNamesMax, kNameBytesMax};
  std::vector<Name> names_;
  Name nameless_;
  TraceDetails details_;
  TextTable lane_table_{kLanesMax, std::size_t{4} << 20};
  std::vector<Lane> lanes_;
  Lane refused_lane_;
  TextTable process_table_{4096, std::size_t{1} << 20};
  std::vector<Process> processes_;                    // by slot - 1
  std::map<std::string, std::string> process_names_;  // by "pid"
  NamedProcesses named_;
  std::string steps_of_;  // the first device that has a line of steps: its are the run's
  // Stages of a pipeline, by "pid" and "tid" of the thread that is called by its own.
  std::map<std::pair<std::string, std::string>, std::int32_t> stages_;
  TraceSeries series_;
  std::unordered_map<std::string, std::vector<Async>> async_;
  std::size_t async_open_ = 0;
  // The document's first spans, held back until it is clear about when it is: one time that is years away from all
  // others would stretch the run over them.
  struct Held {
    Span span;
    std::uint32_t process;
    std::int64_t offset;
  };
  std::vector<Held> held_;
  bool is_settled_ = false;
  bool has_zero_ = true;  // 0 is a time here, and not "not known"
  std::int64_t time_from_ns_ = 0;
  std::int64_t time_to_ns_ = 0;
  LaunchOrder launches_;
  std::string text_;  // scratch
  std::vector<std::string> members_;

  struct Count {
    std::string_view counter;
    std::uint64_t n;
    std::int64_t first_offset;
  };
  std::vector<Count> counts_;
  std::uint64_t arguments_skipped_ = 0;  // of nearly every event, so not among counts_
  std::int64_t first_skipped_offset_ = 0;

  std::int64_t first_ns_ = INT64_MAX;  // of spans
  std::int64_t base_ns_ = 0;
  std::int64_t rank_ = -1;
};

}  // namespace hotlap
