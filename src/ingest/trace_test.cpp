// Chrome traces of every shape that is met, whole, cut and damaged, at every chunk size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/format.h"
#include "ingest/importer.h"
#include "ingest/registry.h"
#include "ingest/trace_assembler.h"
#include "ingest/trace_event.h"

namespace hotlap {
namespace {

// Keeps what an importer says, as lines.
class LineSink final : public ImportSink {
 public:
  void clock(const ImportClock& clock) override { clock_ = clock; }
  SeriesHandle series(const MetricDesc& metric, std::string_view instance) override {
    const std::string name = std::string(metric.name) + "/" + std::string(instance);
    const auto found = std::find(series_.begin(), series_.end(), name);
    if (found != series_.end()) return {static_cast<std::uint32_t>(found - series_.begin())};
    series_.push_back(name);
    return {static_cast<std::uint32_t>(series_.size() - 1)};
  }
  void sample(SeriesHandle handle, std::int64_t t_ns, Value value) override {
    lines.push_back(format("sample {} {} {}", series_[handle.index], t_ns,
                           value.is_missing() ? "missing" : format("{}", *value.number())));
  }
  std::uint32_t name(std::string_view text) override {
    names_.emplace_back(text);
    return static_cast<std::uint32_t>(names_.size());
  }
  std::uint32_t process(const ProcessInfo& process) override {
    ProcessInfo kept = process;
    if (kept.slot == 0) kept.slot = static_cast<std::uint32_t>(processes.size() + 1);
    processes[kept.slot] = kept;
    return kept.slot;
  }
  void span(const Span& span) override { spans.push_back(span); }
  void event(const Event&) override {}
  void attribute(std::string_view key, std::string_view value) override { attributes[std::string(key)] = value; }
  void count_loss(std::string_view counter, std::uint64_t count, std::int64_t offset) override {
    losses[std::string(counter)] += count;
    offsets.try_emplace(std::string(counter), offset);
  }

  // "operator aten::add 1000+500 p1 t7"
  std::vector<std::string> told() const {
    std::vector<std::string> out = lines;
    for (const Span& span : spans) {
      out.push_back(format("{} {} {}+{} p{} t{}", to_string(span.kind), span.name == 0 ? "-" : names_[span.name - 1],
                           span.start_ns, span.duration_ns, span.process, span.thread));
    }
    return out;
  }

  std::vector<std::string> lines;
  std::vector<Span> spans;
  std::map<std::uint32_t, ProcessInfo> processes;
  std::map<std::string, std::string> attributes;
  std::map<std::string, std::uint64_t> losses;
  std::map<std::string, std::int64_t> offsets;
  ImportClock clock_;

 private:
  std::vector<std::string> series_;
  std::vector<std::string> names_;
};

const ImporterSpec& chrome() {
  for (const ImporterSpec* spec : all_importers()) {
    if (spec->name == "chrome_trace") return *spec;
  }
  std::abort();
}

Result<ImportStats> read(std::string_view text, LineSink& sink, std::size_t chunk = SIZE_MAX) {
  const auto importer = chrome().open_stream(sink);
  while (!text.empty()) {
    const std::size_t n = std::min(chunk, text.size());
    HOTLAP_TRY(importer->push(as_bytes(text.substr(0, n))));
    text.remove_prefix(n);
  }
  return importer->finish();
}

LineSink read_all(std::string_view text) {
  LineSink sink;
  EXPECT_TRUE(read(text, sink).ok()) << text;
  return sink;
}

using Lines = std::vector<std::string>;

constexpr std::string_view kTwo =
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 8, "ts": 10, "dur": 5,
        "args": {"External id": 3}},
       {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 12.5, "dur": 2.25,
        "args": {"device": 0, "stream": 7, "correlation": 99, "External id": 3, "grid": [1, 2, 3]}})";
const Lines kTwoTold{"operator aten::add 10000+5000 p1 t8", "kernel gemm 12500+2250 p2 t7"};

TEST(ChromeTrace, ObjectListAndTwoDocumentsGiveTheSame) {
  const std::string two(kTwo);
  EXPECT_EQ(read_all("[" + two + "]").told(), kTwoTold);
  EXPECT_EQ(read_all("{\"schemaVersion\": 1, \"traceEvents\": [" + two + "], \"traceName\": \"x\"}").told(), kTwoTold);
  EXPECT_EQ(read_all("\xEF\xBB\xBF  [" + two + ", {} ]\n").told(), kTwoTold);
  const std::size_t comma = two.find("},\n") + 1;
  EXPECT_EQ(read_all("{\"traceEvents\":[" + two.substr(0, comma) + "]}\n[" + two.substr(comma + 1) + "]").told(),
            kTwoTold);
  // One event a line, without any list.
  EXPECT_EQ(read_all(two.substr(0, comma) + "\n" + two.substr(comma + 1)).told(), kTwoTold);
}

TEST(ChromeTrace, AnyChunkBoundaryGivesTheSame) {
  const std::string text = "{\"deviceProperties\": [{\"id\": 0, \"name\": \"V100\"}], \"traceEvents\": [" +
                           std::string(kTwo) +
                           "], \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8}}";
  for (std::size_t chunk = 1; chunk <= text.size(); ++chunk) {
    LineSink sink;
    ASSERT_TRUE(read(text, sink, chunk).ok());
    ASSERT_EQ(sink.told(), kTwoTold) << chunk;
    ASSERT_EQ(sink.attributes["gpu0.name"], "V100");
    ASSERT_EQ(sink.processes[1].role, ProcessRole::kRank);
    ASSERT_EQ(sink.processes[1].index, 3);
    ASSERT_EQ(sink.losses, (std::map<std::string, std::uint64_t>{{"ingest.arguments_skipped", 1}}));
  }
}

TEST(ChromeTrace, TheNumberOfAStepIsKeptInEverySpelling) {
  const LineSink sink = read_all(
      R"([{"ph":"X","name":"forward-compute","cat":"forward-compute","pid":0,"tid":0,"ts":1.5,"dur":2,
           "args":{"step":23,"mb_id":0}},
          {"ph":"X","name":"b","pid":0,"tid":0,"ts":4,"dur":1,"args":{"iteration":"24"}},
          {"ph":"B","name":"c","pid":0,"tid":0,"ts":6,"args":{"global_step":25}},
          {"ph":"E","pid":0,"tid":0,"ts":7},
          {"ph":"b","name":"d","cat":"x","id":1,"pid":0,"tid":0,"ts":8,"args":{"step_num":26}},
          {"ph":"e","name":"d","cat":"x","id":1,"pid":0,"tid":0,"ts":9},
          {"ph":"X","name":"e","pid":0,"tid":0,"ts":10,"dur":1,"args":{"step":"warm-up"}}])");
  std::vector<std::int64_t> steps;
  for (const Span& span : sink.spans) steps.push_back(span.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{23, 24, 25, 26, -1}));
}

TEST(ChromeTrace, ProcessesThatAreCalledByTheirRankAreRanks) {
  const auto roles = [](std::string_view first, std::string_view second) {
    const LineSink sink = read_all(format(
        R"([{{"ph":"X","name":"a","pid":0,"tid":0,"ts":1,"dur":1}},
            {{"ph":"X","name":"a","pid":1,"tid":0,"ts":2,"dur":1}},
            {{"ph":"M","name":"process_name","pid":0,"args":{{"name":"{}"}}}},
            {{"ph":"M","name":"process_name","pid":1,"args":{{"name":"{}"}}}}])",
        first, second));
    std::vector<std::string> out;
    for (const auto& [slot, process] : sink.processes) out.push_back(slot_label(process));
    return out;
  };
  EXPECT_EQ(roles("DP rank [0]", "DP rank [1]"), (Lines{"rank 0", "rank 1"}));
  EXPECT_EQ(roles("Rank 7", "rank3"), (Lines{"rank 7", "rank 3"}));
  EXPECT_EQ(roles("rank 1", "rank 1"), (Lines{"main", "rank 1 (1)"}));
  EXPECT_EQ(roles("rank 1", "loader"), (Lines{"main", "loader (1)"}));
  EXPECT_EQ(roles("PP rank 0, TP rank 0", "PP rank 1, TP rank 0"), (Lines{"main", "PP rank 1, TP rank 0 (1)"}));
}

TEST(ChromeTrace, ThreadsThatAreCalledByTheirStageTellIt) {
  // Behind and in front of the events; a thread without events, or of another name, has none.
  const LineSink sink = read_all(
      R"([{"ph":"M","name":"thread_name","pid":0,"tid":30,"args":{"name":"PP rank 3, TP rank 0, compute"}},
          {"ph":"M","name":"thread_name","pid":0,"tid":99,"args":{"name":"PP rank 9"}},
          {"ph":"M","name":"thread_name","pid":0,"tid":8,"args":{"name":"thread 8 of python"}},
          {"ph":"X","name":"forward-compute","pid":0,"tid":30,"ts":1,"dur":1,"args":{"step":1}},
          {"ph":"X","name":"forward-compute","pid":0,"tid":20,"ts":1,"dur":1,"args":{"step":1}},
          {"ph":"X","name":"aten::add","pid":0,"tid":8,"ts":1,"dur":1},
          {"ph":"M","name":"thread_name","pid":0,"tid":20,"args":{"name":"pipeline stage 2"}}])");
  EXPECT_EQ(sink.attributes, (std::map<std::string, std::string>{{"process.1.thread.20.stage", "2"},
                                                                 {"process.1.thread.30.stage", "3"}}));
}

TEST(ChromeTrace, TimesAreExactInEverySpelling) {
  const auto start = [](std::string_view ts) {
    const LineSink sink = read_all(format(R"([{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{},"dur":"1.5"}}])", ts));
    return sink.spans.empty() ? INT64_MIN : sink.spans[0].start_ns;
  };
  EXPECT_EQ(start("1610366387140599"), 1'610'366'387'140'599'000);
  EXPECT_EQ(start("\"1715582400123456.789\""), 1'715'582'400'123'456'789);
  EXPECT_EQ(start("3473608.458"), 3'473'608'458);
  EXPECT_EQ(start("0.0005"), 1);
  EXPECT_EQ(start("-2.5"), -2'500);
  EXPECT_EQ(start("1.5e3"), 1'500'000);
}

TEST(ChromeTrace, UnixTimeIsKnownFromTheBaseOrTheTimesThemselves) {
  const LineSink base =
      read_all(R"({"traceEvents":[{"ph":"X","name":"a","ts":5,"dur":1}],"baseTimeNanoseconds":1712982000000000000})");
  EXPECT_TRUE(base.clock_.is_absolute);
  EXPECT_EQ(base.clock_.offset_ns, 1'712'982'000'000'000'000);
  const LineSink unix_time = read_all(R"([{"ph":"X","name":"a","ts":1610366387140599,"dur":1}])");
  EXPECT_TRUE(unix_time.clock_.is_absolute);
  EXPECT_EQ(unix_time.clock_.offset_ns, 0);
  EXPECT_FALSE(read_all(R"([{"ph":"X","name":"a","ts":12,"dur":1}])").clock_.is_absolute);
}

TEST(ChromeTrace, CategoriesOldAndNew) {
  const auto kind = [](std::string_view category, std::string_view name) {
    const LineSink sink = read_all(format(
        R"([{{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":1,"ts":9,"dur":1,"args":{{"device":0,"stream":7}}}}])",
        category, name));
    return sink.spans.empty() ? std::string("none") : std::string(to_string(sink.spans[0].kind));
  };
  for (const std::string_view op : {"cpu_op", "Operator"}) EXPECT_EQ(kind(op, "aten::mm"), "operator");
  for (const std::string_view kernel : {"kernel", "Kernel"}) EXPECT_EQ(kind(kernel, "sgemm"), "kernel");
  for (const std::string_view copy : {"gpu_memcpy", "Memcpy", "gpu_memset", "Memset"})
    EXPECT_EQ(kind(copy, "x"), "transfer");
  for (const std::string_view call : {"cuda_runtime", "Runtime", "cuda_driver", "hip_runtime", "privateuse1_runtime"}) {
    EXPECT_EQ(kind(call, "cudaLaunchKernel"), "runtime");
  }
  EXPECT_EQ(kind("python_function", "train.py(3): f"), "function");
  EXPECT_EQ(kind("user_annotation", "mine"), "user");
  EXPECT_EQ(kind("gpu_user_annotation", "ProfilerStep#3"), "device_annotation");
  for (const std::string_view any : {"Operator", "cpu_op", "user_annotation"}) {
    EXPECT_EQ(kind(any, "ProfilerStep#3"), "step");
    EXPECT_EQ(kind(any, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), "data_wait");
    EXPECT_EQ(kind(any, "Optimizer.step#SGD.step"), "optimizer");
  }
  EXPECT_EQ(kind("Trace", "PyTorch Profiler (0)"), "none");
}

TEST(ChromeTrace, TheLegacyProfilersListIsOperators) {
  const LineSink sink = read_all(
      R"([{"name": "aten::conv2d", "ph": "X", "ts": 151, "dur": 20, "tid": 1, "pid": "CPU functions", "args": {}},
          {"name": "ProfilerStep#4", "ph": "X", "ts": 100, "dur": 90, "tid": 1, "pid": "CPU functions", "args": {}},
          {"name": "volta_sgemm", "ph": "X", "ts": 160, "dur": 9, "tid": 0, "pid": "CUDA functions", "args": {}}])");
  EXPECT_EQ(sink.told(), (Lines{"operator aten::conv2d 151000+20000 p1 t1", "step ProfilerStep#4 100000+90000 p1 t1",
                                "kernel volta_sgemm 160000+9000 p2 t0"}));
  EXPECT_EQ(sink.spans[1].step, 4);
  EXPECT_EQ(sink.processes.at(1).role, ProcessRole::kMain);
}

TEST(ChromeTrace, BeginsAndEndsNestMatchByNameAndAreMissingWhenUnmatched) {
  const LineSink sink = read_all(
      R"([{"ph":"B","name":"outer","pid":1,"tid":1,"ts":10},{"ph":"B","name":"inner","pid":1,"tid":1,"ts":11},
          {"ph":"E","pid":1,"tid":1,"ts":12},{"ph":"B","name":"lost","pid":1,"tid":1,"ts":13},
          {"ph":"E","name":"outer","pid":1,"tid":1,"ts":14},{"ph":"E","pid":1,"tid":1,"ts":15},
          {"ph":"B","name":"open","pid":1,"tid":2,"ts":16}])");
  EXPECT_EQ(sink.told(), (Lines{"operator inner 11000+1000 p1 t1", "operator lost 13000+-1 p1 t1",
                                "operator outer 10000+4000 p1 t1", "operator open 16000+-1 p1 t2"}));
  EXPECT_EQ(sink.losses.at("ingest.begins_unmatched"), 2U);
  EXPECT_EQ(sink.losses.at("ingest.ends_unmatched"), 1U);
}

TEST(ChromeTrace, EveryOtherPhaseIsTakenOrCounted) {
  const LineSink sink = read_all(
      R"([{"ph":"b","cat":"c","name":"async","id":"0x1","pid":1,"tid":1,"ts":10},
          {"ph":"e","cat":"c","name":"async","id":"0x1","pid":1,"tid":9,"ts":30},
          {"ph":"i","name":"mark","pid":1,"tid":1,"ts":11,"s":"t"},
          {"ph":"C","name":"queue","pid":1,"ts":12,"args":{"depth":3,"odd":"x"}},
          {"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":13,
           "args":{"Device Type":1,"Device Id":0,"Total Allocated":512}},
          {"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}},
          {"ph":"s","name":"ac2g","pid":1,"tid":1,"ts":10,"id":3},
          {"ph":"t","name":"ac2g","ts":10},{"ph":"f","name":"ac2g","ts":10},
          {"ph":"N","name":"o","ts":1},{"ph":"O","name":"o","ts":1},{"ph":"D","name":"o","ts":1},
          {"ph":"two","name":"what","ts":1}])");
  EXPECT_EQ(sink.told(),
            (Lines{"sample trace.counter.queue/1 depth 12000 3", "sample trace.counter.queue/1 odd 12000 missing",
                   "sample torch.memory.allocated.bytes/gpu0 13000 512", "user async 10000+20000 p1 t1",
                   "user mark 11000+0 p1 t1"}));
  EXPECT_EQ(sink.losses.at("ingest.events_skipped"), 6U);
  EXPECT_EQ(sink.losses.at("ingest.events_dropped"), 1U);
  EXPECT_EQ(sink.losses.at("ingest.values_unreadable"), 1U);
  EXPECT_EQ(sink.processes.at(1).role, ProcessRole::kMain);
}

// One bad event between two good ones: both good ones are there, and the bad one as far as it can be read.
struct Damage {
  std::string_view what;
  std::string_view event;
  std::string_view told;  // of it; empty: dropped
  std::string_view counter;
};

class DamagedEvent : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedEvent, CostsOneEvent) {
  const std::string before = R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},)";
  const std::string text =
      before + std::string(GetParam().event) + R"(,{"ph":"X","name":"z","pid":1,"tid":1,"ts":9,"dur":1}])";
  Lines expected{"operator a 1000+1000 p1 t1"};
  if (!GetParam().told.empty()) expected.emplace_back(GetParam().told);
  expected.emplace_back("operator z 9000+1000 p1 t1");
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, std::size_t{64}, text.size()}) {
    LineSink sink;
    ASSERT_TRUE(read(text, sink, chunk).ok());
    ASSERT_EQ(sink.told(), expected) << chunk;
    ASSERT_EQ(sink.losses, (std::map<std::string, std::uint64_t>{{std::string(GetParam().counter), 1}})) << chunk;
    ASSERT_EQ(sink.offsets.begin()->second, static_cast<std::int64_t>(before.size())) << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedEvent,
    ::testing::Values(
        Damage{"control", "{\"ph\":\"X\",\"name\":\"b\x01\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1}",
               "operator b  2000+1000 p1 t1", "ingest.texts_repaired"},
        Damage{"utf8", "{\"ph\":\"X\",\"name\":\"\xC3\x28\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1}",
               "operator \xEF\xBF\xBD( 2000+1000 p1 t1", "ingest.texts_repaired"},
        Damage{"escape", R"({"ph":"X","name":"C:\new\dir","pid":1,"tid":1,"ts":2,"dur":1})",
               "operator C:\new\\dir 2000+1000 p1 t1", "ingest.texts_repaired"},
        Damage{"quotes", R"({"ph":"X","name":"{"device": "cpu"}(12): run","pid":1,"tid":1,"ts":2,"dur":1})",
               "operator {\"device\": \"cpu\"}(12): run 2000+1000 p1 t1", "ingest.events_repaired"},
        Damage{"missing_quote", R"({"ph":"X","name":"b","pid":1,tid":1,"ts":2,"dur":1})", "operator b 2000+1000 p1 t1",
               "ingest.events_repaired"},
        Damage{"missing_quote_behind_the_name", R"({"ph":"X","name":"b",pid":1,"tid":1,"ts":2,"dur":1})",
               "operator b 2000+1000 p1 t1", "ingest.events_repaired"},
        Damage{"name_without_its_last_quote", R"({"ph":"X","name":"b,"pid":1,"tid":1,"ts":2,"dur":1})",
               "operator b 2000+1000 p1 t1", "ingest.events_repaired"},
        Damage{"no_quotes", R"({ph:"X",name:"b",pid:1,tid:1,ts:2,dur:1})", "operator b 2000+1000 p1 t1",
               "ingest.events_repaired"},
        Damage{"control_in_argument",
               "{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1,\"args\":[\"\x01\"]}",
               "operator b 2000+1000 p1 t1", "ingest.texts_repaired"},
        Damage{"utf8_in_category",
               "{\"ph\":\"X\",\"cat\":\"\xFF\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1}",
               "operator b 2000+1000 p1 t1", "ingest.texts_repaired"},
        Damage{"escape_in_thread", R"({"ph":"X","name":"b","pid":1,"tid":"\x","ts":2,"dur":1})",
               "operator b 2000+1000 p1 t2147483649", "ingest.texts_repaired"},
        Damage{"nan_in_arguments", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":nan}})",
               "operator b 2000+1000 p1 t1", "ingest.numbers_repaired"},
        Damage{"infinity_in_a_list", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1,"args":[[1,-Infinity]]})",
               "operator b 2000+1000 p1 t1", "ingest.numbers_repaired"},
        Damage{"wide_kept",
               R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":18446744073709551615}})",
               "operator b 2000+1000 p1 t1", "ingest.numbers_wide"},
        Damage{"beyond_64_bits",
               R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":28446744073709551615}})",
               "operator b 2000+1000 p1 t1", "ingest.numbers_repaired"},
        Damage{"member_twice", R"({"ph":"X","name":"a","name":"b","pid":1,"tid":1,"ts":2,"dur":1})",
               "operator b 2000+1000 p1 t1", "ingest.members_repeated"},
        Damage{"arguments_twice", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1,"args":[],"args":{}})",
               "operator b 2000+1000 p1 t1", "ingest.members_repeated"},
        Damage{"kept_argument_twice",
               R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1,"args":{"stream":1,"stream":2}})",
               "operator b 2000+1000 p1 t1", "ingest.members_repeated"},
        Damage{"half_a_century_off", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":-1615207264505000,"dur":1})", "",
               "ingest.times_invalid"},
        Damage{"missing_comma", R"({"ph":"X","name":"b" "pid":1,"tid":1,"ts":2,"dur":1})", "operator b 2000+1000 p1 t1",
               "ingest.events_repaired"},
        Damage{"cut_inside", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":)", "", "ingest.times_invalid"},
        Damage{"negative", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":-1615207264505000})",
               "operator b 2000+-1 p1 t1", "ingest.durations_invalid"},
        Damage{"huge", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":18446744073709551615})",
               "operator b 2000+-1 p1 t1", "ingest.durations_invalid"},
        Damage{"nan", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":nan,"dur":1})", "", "ingest.times_invalid"},
        Damage{"text_time", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":"100a","dur":1})", "", "ingest.times_invalid"},
        Damage{"overflow", R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":1e300,"dur":1})", "", "ingest.times_invalid"},
        Damage{"no_phase", R"({"name":"b","pid":1,"tid":1,"ts":2,"dur":1})", "", "ingest.events_dropped"}),
    [](const auto& tested) { return std::string(tested.param.what); });

TEST(ChromeTrace, WhatIsOddButWholeCostsNothing) {
  const LineSink sink = read_all(
      R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":inf,"Comms Id":18446744073709551615,"x":NaN}},
          {"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1,"args":[],"args":{"correlation":1,"correlation":2}},,
          {"ph":"X","name":"c","pid":1,"tid":1,"ts":3,"dur":1,"args":{"02":2,},},])");
  EXPECT_EQ(sink.told().size(), 3U);
  EXPECT_EQ(sink.losses, (std::map<std::string, std::uint64_t>{{"ingest.arguments_skipped", 4},
                                                               {"ingest.members_repeated", 2},
                                                               {"ingest.numbers_repaired", 1},
                                                               {"ingest.numbers_wide", 1}}));
}

// Whatever is skipped of an event is looked at, at every depth and in keys.
TEST(ChromeTrace, DamageInWhatIsNotKeptIsCounted) {
  const auto losses = [](std::string_view arguments) {
    return read_all(format(R"([{{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{}}}])", arguments)).losses;
  };
  for (const std::string_view text :
       {"{\"x\":\"\x02\"}", "{\"x\x02\":1}", "{\"x\":[{\"y\":\"\xC3(\"}]}", "{\"x\":\"\\q\"}", "{\"x\":\"\\ud800\"}",
        "{\"x\":[\"long enough for a lane \x7F\x1F\"]}"}) {
    EXPECT_EQ(losses(text).count("ingest.texts_repaired"), 1U) << text;
  }
  for (const std::string_view number : {"nan", "NaN", "-inf", "Infinity", "None", "+1", "-", "1e"}) {
    EXPECT_EQ(losses(format("{{\"x\":{}}}", number)).count("ingest.numbers_repaired"), number == "1e" ? 0U : 1U)
        << number;
    if (number == "+1" || number == "-" || number == "1e") continue;
    EXPECT_EQ(losses(format("{{\"x\":[1,{{\"y\":{}}}]}}", number)).count("ingest.numbers_repaired"), 1U) << number;
  }
  EXPECT_EQ(losses(R"({"x":1,"y":2,"x":3})").count("ingest.members_repeated"), 1U);
  // What is odd and sound is neither.
  for (const std::string_view text : {R"({"x":"\u00e9 \ud83d\ude00 \"q\" \\ \n"})", "{\"x\":\"\xC3\xA9\"}",
                                      R"({"x":[null,true,false,-1.5e-3,-0]})", R"({"nil":1,"in":2,"Index":[]})"}) {
    const auto found = losses(text);
    EXPECT_FALSE(found.contains("ingest.texts_repaired") || found.contains("ingest.numbers_repaired") ||
                 found.contains("ingest.members_repeated"))
        << text;
  }
}

TEST(ChromeTrace, WorkBeforeItsLaunchIsCountedInEitherOrder) {
  constexpr std::string_view kLaunch =
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":5000,"dur":10,
          "args":{"correlation":77}})";
  const auto kernel = [](int ts) {
    return format(R"({{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{},"dur":10,
          "args":{{"correlation":77,"device":0,"stream":7}}}})",
                  ts);
  };
  const auto reversed = [](const LineSink& sink) {
    const auto found = sink.losses.find("ingest.kernels_before_launch");
    return found == sink.losses.end() ? 0U : found->second;
  };
  EXPECT_EQ(reversed(read_all(format("[{},{}]", kLaunch, kernel(4997)))), 1U);
  EXPECT_EQ(reversed(read_all(format("[{},{}]", kernel(4997), kLaunch))), 1U);
  EXPECT_EQ(reversed(read_all(format("[{},{},{}]", kLaunch, kernel(5003), kernel(4000)))), 1U);
  EXPECT_EQ(reversed(read_all(format("[{},{}]", kLaunch, kernel(5000)))), 0U);
  // Two programs' launches have nothing to do with each other.
  EXPECT_EQ(reversed(read_all(format("[{}][{}]", kLaunch, kernel(4997)))), 0U);
}

TEST(ChromeTrace, EventsDeepInsideADocumentAndListsOfDocuments) {
  const std::string two(kTwo);
  EXPECT_EQ(read_all("{\"data\": {\"version\": 1, \"traceEvents\": [" + two + "], \"x\": [1]}, \"y\": 2}").told(),
            kTwoTold);
  EXPECT_EQ(read_all("{\"pages\": [{\"a\": [{}]}, {\"traceEvents\": [" + two + "]}], \"y\": 2}").told(), kTwoTold);
  const std::size_t comma = two.find("},\n") + 1;
  const std::string list = "[{\"schemaVersion\": 1, \"traceEvents\": [" + two.substr(0, comma) +
                           "]},\n{\"traceEvents\": [" + two.substr(comma + 1) + "]}]";
  EXPECT_EQ(read_all(list).told(), kTwoTold);
  for (std::size_t chunk = 1; chunk <= list.size(); ++chunk) {
    LineSink sink;
    ASSERT_TRUE(read(list, sink, chunk).ok());
    ASSERT_EQ(sink.told(), kTwoTold) << chunk;
    ASSERT_FALSE(sink.losses.contains("ingest.input_unreadable")) << chunk;
  }
  // Behind more than is kept of a member.
  const std::string large = "{\"data\": {\"text\": \"" + std::string(TraceReader::kMemberBytesMax + 9, 'x') +
                            "\", \"traceEvents\": [" + two + "]}, \"distributedInfo\": {\"rank\": 3}}";
  LineSink sink;
  ASSERT_TRUE(read(large, sink, 65536).ok());
  EXPECT_EQ(sink.told(), kTwoTold);
  EXPECT_EQ(sink.processes[1].index, 3);
}

// What a file system leaves of a file that was being written when the machine went down.
TEST(ChromeTrace, ZerosInTheMiddleCostTheEventThatTheyHit) {
  const std::string zeros(4096, '\0');
  const std::string text = R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
{"ph":"X","name":"b)" + zeros +
                           R"({"ph":"X","name":"z","pid":1,"tid":1,"ts":9,"dur":1}])";
  LineSink sink;
  ASSERT_TRUE(read(text, sink).ok());
  EXPECT_EQ(sink.told(), (Lines{"operator a 1000+1000 p1 t1", "operator z 9000+1000 p1 t1"}));
  EXPECT_EQ(sink.losses, (std::map<std::string, std::uint64_t>{{"ingest.events_dropped", 1}}));
}

// A writer died, another one went on in the same file.
TEST(ChromeTrace, ALineThatBreaksOffInATextCostsItsEvent) {
  const std::string text =
      "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},\n"
      "{\"ph\":\"X\",\"name\":\"cut\n"
      "  {\"ph\":\"X\",\"name\":\"z\",\"pid\":1,\"tid\":1,\"ts\":9,\"dur\":1},\n"
      "{\"ph\":\"X\",\"na\n"
      "[{\"ph\":\"X\",\"name\":\"y\",\"pid\":1,\"tid\":1,\"ts\":9,\"dur\":1}]";
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{64}, text.size()}) {
    LineSink sink;
    ASSERT_TRUE(read(text, sink, chunk).ok());
    EXPECT_EQ(sink.told(),
              (Lines{"operator a 1000+1000 p1 t1", "operator z 9000+1000 p1 t1", "operator y 9000+1000 p1 t1"}))
        << chunk;
    EXPECT_EQ(sink.losses.at("ingest.events_dropped"), 2U) << chunk;
    EXPECT_EQ(sink.offsets.at("ingest.events_dropped"), 55) << chunk;
  }
}

// Two profilers wrote into one file, one with Unix time and one from 0: neither is wrong.
TEST(ChromeTrace, EachDocumentHasItsOwnTimes) {
  const LineSink sink = read_all(
      R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1610366387140599,"dur":1},
          {"ph":"X","name":"lost","pid":1,"tid":1,"ts":5,"dur":1},
          {"ph":"X","name":"b","pid":1,"tid":1,"ts":1610366387140600,"dur":1}]
         {"traceEvents":[{"ph":"X","name":"c","pid":1,"tid":1,"ts":5,"dur":1}]})");
  EXPECT_EQ(sink.spans.size(), 3U);
  EXPECT_EQ(sink.losses, (std::map<std::string, std::uint64_t>{{"ingest.times_invalid", 1}}));
  EXPECT_EQ(sink.offsets.at("ingest.times_invalid"), 80);
}

TEST(ChromeTrace, ZeroIsNoTimeWhereAllOthersAreYearsAway) {
  const std::string_view zero = R"({"ph":"X","name":"b","pid":1,"tid":1,"ts":0,"dur":1})";
  const LineSink absolute = read_all(format(R"([{},{{"ph":"X","name":"a","ts":1610366387140599,"dur":1}}])", zero));
  EXPECT_EQ(absolute.spans.size(), 1U);
  EXPECT_EQ(absolute.losses.at("ingest.times_invalid"), 1U);
  EXPECT_EQ(read_all(format(R"([{},{{"ph":"X","name":"a","ts":5,"dur":1}}])", zero)).spans.size(), 2U);
}

TEST(ChromeTrace, ACutFileKeepsEveryWholeEvent) {
  const std::string text = "{\"traceEvents\": [" + std::string(kTwo) + "]}";
  const std::size_t first_end = text.find("},\n") + 1;
  for (std::size_t cut = first_end; cut < text.size(); ++cut) {
    LineSink sink;
    ASSERT_TRUE(read(text.substr(0, cut), sink).ok()) << cut;
    const bool has_both = cut >= text.size() - 3;  // all but the event's own last brace is whole, too
    ASSERT_EQ(sink.told(), has_both ? kTwoTold : Lines{kTwoTold[0]}) << cut;
    // Behind an event and its comma nothing is missing that could be told.
    const std::string_view rest = std::string_view(text).substr(0, cut).substr(first_end);
    const bool is_inside = !has_both && rest.find('{') != std::string_view::npos;
    ASSERT_EQ(sink.losses.contains("ingest.input_truncated"), is_inside) << cut;
  }
}

TEST(ChromeTrace, TextBetweenEventsIsSkippedAndCounted) {
  const LineSink sink = read_all(R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}, oops "what": 3
     {"ph":"X","name":"z","pid":1,"tid":1,"ts":9,"dur":1}] trailing)");
  EXPECT_EQ(sink.spans.size(), 2U);
  EXPECT_EQ(sink.losses.at("ingest.input_unreadable"), 2U);
}

TEST(ChromeTrace, WhatIsNoTraceIsNamed) {
  const auto why = [](std::string_view text) {
    LineSink sink;
    const Result<ImportStats> stats = read(text, sink);
    return stats.ok() ? std::string("ok") : stats.error().message;
  };
  EXPECT_THAT(why(R"({"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1, "ctrl_deps": 1}]})"),
              ::testing::HasSubstr("execution trace"));
  EXPECT_THAT(why("[[1, 2, 3], [4, 5, 6]]"), ::testing::HasSubstr("memory timeline"));
  EXPECT_THAT(why(R"({"model_type": "bert"})"), ::testing::HasSubstr("configuration of a model"));
  EXPECT_THAT(why(R"({"a": 1, "b": [2]})"), ::testing::HasSubstr("a JSON object with a, b"));
  EXPECT_THAT(why(R"({"traceEvents": []})"), ::testing::HasSubstr("empty"));
  EXPECT_THAT(why(R"({"traceEvents": null})"), ::testing::HasSubstr("no list"));
  EXPECT_THAT(why(R"([{"ph":"ABC","name":"a","ts":1}])"), ::testing::HasSubstr("none of its 1 events"));
  EXPECT_THAT(why(R"([{"ph":"M","name":"process_name","pid":1,"args":{"name":"x"}}])"),
              ::testing::HasSubstr("only describes processes"));
}

// What the fast way reads, the lenient one reads the same.
TEST(ChromeTrace, TheLenientWayReadsSoundEventsAsTheFastOne) {
  for (const std::string_view text :
       {R"({"ph": "X", "cat": "kernel", "name": "a\"b", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2,
           "args": {"correlation": 5}})",
        R"({"name":"x","ph":"B","ts":"3","tid":"stream 7","pid":"GPU 0","id2":{"local":"0x1"}})"}) {
    TraceEvent fast;
    const char* at = text.data();
    ASSERT_EQ(scan_event(at, text.data() + text.size(), fast), json::Scan::kOk);
    TraceEvent slow;
    ASSERT_TRUE(scan_damaged_event(text, slow));
    EXPECT_EQ(fast.phase, slow.phase);
    EXPECT_EQ(fast.name.raw, slow.name.raw);
    EXPECT_EQ(fast.start_ns, slow.start_ns);
    EXPECT_EQ(fast.duration_ns, slow.duration_ns);
    EXPECT_EQ(fast.process, slow.process);
    EXPECT_EQ(fast.thread, slow.thread);
    EXPECT_EQ(fast.id, slow.id);
    EXPECT_EQ(fast.correlation, slow.correlation);
  }
}

}  // namespace
}  // namespace hotlap
