#pragma once
// What SageMaker Debugger's profiler writes: system metrics as JSON lines, and timelines of the framework as lists of
// trace events with their own time base. Both are read in pieces of any size, closed or cut off.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "ingest/importer.h"
#include "ingest/json_objects.h"
#include "ingest/trace_reader.h"

namespace hotlap {

// system/incremental/…/<epoch>.algo-<n>.json. Confined to the importing thread.
class SmdebugSystem {
 public:
  explicit SmdebugSystem(ImportSink& out) : out_(out) {}
  void push(ByteView chunk_untrusted);
  ImportStats finish();

 private:
  void take(const JsonObjectText& object);
  bool take_record(const JsonValue& record, std::int64_t offset);

  ImportSink& out_;
  JsonObjectCutter objects_{std::size_t{64} << 10};
  std::uint64_t events_ = 0;
  bool is_clock_told_ = false;
};

// What a timeline's file name says: "<end µs>_<node>_<suffix>.json"; the node as readers show it, "algo-1-905".
struct SmdebugFileName {
  std::int64_t end_us = 0;
  std::string node;
  std::string suffix;  // pythontimeline, model_timeline, horovod_timeline, smdataparallel_timeline
};
std::optional<SmdebugFileName> read_smdebug_file_name(std::string_view file_name);

// The processes that timelines speak of, over all files of a folder: each has one slot, and its steps go on from one
// file to the next. Bounded.
struct SmdebugProcesses {
  struct Known {
    std::uint32_t slot = 0;
    bool has_pid = false;  // most events do not tell it
  };
  std::map<std::string, Known> known;                      // by what tells them apart
  std::map<std::uint32_t, std::int64_t> last_step_end_ns;  // by slot
  std::map<std::uint32_t, std::int64_t> steps;             // so far, by slot
};

// One file of framework/pevents. Confined to the importing thread.
class SmdebugTimeline final : private TraceReader::Handler {
 public:
  // `node` labels the processes; empty: not known. `processes` outlives this.
  SmdebugTimeline(ImportSink& out, SmdebugProcesses& processes, std::string node)
      : out_(out), processes_(processes), node_(std::move(node)), reader_(*this, {.is_strict = out.is_strict()}) {}
  void push(ByteView chunk_untrusted) { reader_.push(chunk_untrusted); }
  ImportStats finish();

 private:
  struct Open {  // a B without its E
    std::int64_t start_ns = 0;
    std::string name;
    std::int64_t offset = 0;
  };
  struct Phase {
    std::string name;
    std::vector<Open> open;
  };
  // Those of an event's arguments that mean something here; -1: not there.
  struct Arguments {
    std::int64_t base_us = -1;
    std::int64_t pid = -1;
    std::int64_t worker = -1;
    std::int64_t workers = -1;
    std::int64_t step = -1;
  };

  void on_event(const TraceEvent& event, std::int64_t offset) override;
  void on_member(std::string_view, std::string_view) override {}
  void on_loss(std::string_view counter, std::int64_t offset) override { out_.count_loss(counter, 1, offset); }
  static Arguments arguments_of(const TraceEvent& event);
  std::string name_of(const TraceEvent& event, std::int64_t offset);
  bool take_event(const TraceEvent& event, std::int64_t offset);
  bool take_metadata(const TraceEvent& event);
  bool take_complete(const TraceEvent& event, Phase& phase, std::int64_t start_ns, std::int64_t offset);
  bool begin(const TraceEvent& event, Phase& phase, std::int64_t start_ns, std::int64_t offset);
  bool end(Phase& phase, std::int64_t end_ns, std::int64_t offset);
  void give(const Phase& phase, const std::string& name, std::int64_t start_ns, std::int64_t duration_ns,
            const Arguments& arguments);
  std::uint32_t process_of(const Phase& phase, const Arguments& arguments);

  ImportSink& out_;
  SmdebugProcesses& processes_;
  std::string node_;
  TraceReader reader_;
  std::optional<std::int64_t> base_ns_;
  std::map<std::int64_t, Phase> phases_;
  std::uint64_t events_ = 0;
};

// What the first bytes of a file look like.
bool looks_like_smdebug_system(ByteView head_untrusted);
bool looks_like_smdebug_timeline(ByteView head_untrusted);

}  // namespace hotlap
