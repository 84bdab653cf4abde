// The tables of what is inside the step, over a recording as an importer of traces leaves it.
#include "query/trace_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/clock.h"
#include "query/query.h"
#include "store/recording_writer.h"
#include "support/query_rows.h"
#include "support/temp_dir.h"

namespace hotlap {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kUs = 1'000;
constexpr std::uint32_t kHost = 1;
constexpr std::uint32_t kGpu = 2;

class TraceRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<RunFolder> folder = RunFolder::create(
        home_.path(), {.id = make_ulid(1, 1, 2), .name = "t", .status = RunStatus::kFinished, .node = "n1"});
    ASSERT_TRUE(folder.ok()) << folder.error().message;
    auto writer = RecordingWriter::create(
        folder->path() / "a.hotlap", {.id = "01J00000000000000000000001", .node = "n1", .interval_ns = kNsPerS}, {});
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    writer_ = std::move(*writer);
    writer_->put_attribute("source.format", "chrome_trace");
    writer_->put_process({.slot = kHost, .pid = 7, .role = ProcessRole::kRank, .index = 3});
    writer_->put_process({.slot = kGpu, .label = "gpu0"});
    folder_ = std::move(*folder);
  }

  void add(SpanKind kind, const std::string& name, std::int64_t start_us, std::int64_t us, std::int64_t value_a = -1,
           std::int64_t value_b = -1, std::uint32_t thread = 1, const std::string& detail = {}) {
    Span span{.start_ns = start_us * kUs, .duration_ns = us < 0 ? -1 : us * kUs, .kind = kind, .thread = thread};
    span.process = kind == SpanKind::kKernel || kind == SpanKind::kTransfer ? kGpu : kHost;
    span.name = name.empty() ? 0 : writer_->add_name(name);
    span.step = kind == SpanKind::kStep ? value_a : -1;
    span.value_a = kind == SpanKind::kStep ? -1 : value_a;
    span.value_b = value_b;
    if (!detail.empty()) span.detail = writer_->add_name(detail);
    writer_->add_span(span);
  }
  std::vector<std::string> ask(const std::string& sql) {
    if (writer_) {
      EXPECT_TRUE(writer_->close().ok());
    }
    writer_.reset();
    Result<std::unique_ptr<QueriedRun>> run = QueriedRun::open(*folder_, {});
    if (!run.ok()) return {"error: " + run.error().message};
    test::QueryRows out;
    const Result<void> done = execute_query(**run, {.run_folder = {}, .sql = sql, .parameters = {}, .limits = {}}, out);
    if (!done.ok()) return {"error: " + done.error().message};
    return out.rows();
  }

  test::TempDir home_;
  std::optional<RunFolder> folder_;
  std::unique_ptr<RecordingWriter> writer_;
};

TEST_F(TraceRowsTest, OperatorsHaveOwnTimeAndTheTimeOfWhatTheyLaunched) {
  add(SpanKind::kStep, "ProfilerStep#5", 0, 1000, 5);
  add(SpanKind::kOperator, "aten::linear", 10, 100, 1, 40);
  add(SpanKind::kOperator, "aten::addmm", 20, 60, 2, 40);
  add(SpanKind::kRuntime, "cudaLaunchKernel", 30, 10, 900, 2);
  add(SpanKind::kKernel, "volta_sgemm_128x64_nn", 50, 500, 900, 2, 7);
  add(SpanKind::kOperator, "aten::add", 2000, 10);  // outside of steps, without an id
  EXPECT_THAT(ask("SELECT name, duration_ms, self_ms, device_ms, device_calls, caller, operator_id, sequence, step, "
                  "process, rank FROM operator ORDER BY start_ns"),
              ElementsAre("aten::linear|0.1|0.04|0|0|NULL|1|40|5|rank 3|3",
                          "aten::addmm|0.06|0.06|0.5|1|aten::linear|2|40|5|rank 3|3",
                          "aten::add|0.01|0.01|NULL|NULL|NULL|NULL|NULL|NULL|rank 3|3"));
}

// Of a recorded job the hook notes how long each update took: that is no operator.
TEST_F(TraceRowsTest, UpdatesThatTheHookNotedAreNoOperators) {
  add(SpanKind::kOptimizer, "", 10, 100);
  add(SpanKind::kOptimizer, "Optimizer.step#SGD.step", 200, 50, 1, -1);
  EXPECT_THAT(ask("SELECT name, duration_ms FROM operator"), ElementsAre("Optimizer.step#SGD.step|0.05"));
}

TEST_F(TraceRowsTest, KernelsKnowWhoLaunchedThemAndHowLongTheyWereQueued) {
  add(SpanKind::kStep, "ProfilerStep#5", 0, 100, 5);
  add(SpanKind::kOperator, "aten::addmm", 20, 60, 2);
  add(SpanKind::kRuntime, "cudaLaunchKernel", 30, 10, 900);               // inside it, without its id
  add(SpanKind::kRuntime, "cudaLaunchKernel", 95, 10, 901);               // no operator
  add(SpanKind::kKernel, "volta_sgemm_128x64_nn", 230, 500, 900, -1, 7);  // when the step is over on the host
  add(SpanKind::kKernel, "ncclDevKernel_AllReduce", 740, 50, 901, -1, 9);
  add(SpanKind::kKernel, "triton_poi_fused_0", 800, 50, 902, -1, 7);
  EXPECT_THAT(
      ask("SELECT name, sort, type, matrix_units, device, stream, queued_ms, correlation, operator, operator_id, step, "
          "process FROM kernel ORDER BY start_ns"),
      ElementsAre("volta_sgemm_128x64_nn|matrix product|fp32|0|gpu0|7|0.2|900|aten::addmm|2|5|rank 3",
                  "ncclDevKernel_AllReduce|communication|NULL|NULL|gpu0|9|0.645|901|NULL|NULL|5|rank 3",
                  "triton_poi_fused_0|element-wise|NULL|NULL|gpu0|7|NULL|902|NULL|NULL|NULL|NULL"));
}

TEST_F(TraceRowsTest, CopiesTellDirectionBytesAndMemory) {
  add(SpanKind::kTransfer, "Memcpy HtoD (Pageable -> Device)", 0, 10, 1, 4096, 7);
  add(SpanKind::kTransfer, "Memcpy DtoH (Device -> Pinned)", 20, 10, 2, -1, 7);
  add(SpanKind::kTransfer, "Memset (Device)", 40, 1, 3, 16, 7);
  EXPECT_THAT(ask("SELECT direction, bytes, pinned, device FROM copy"),
              ElementsAre("host to device|4096|0|gpu0", "device to host|NULL|1|gpu0", "fill|16|NULL|gpu0"));
}

TEST_F(TraceRowsTest, OfACollectiveWhatNothingHidesIsExposed) {
  add(SpanKind::kKernel, "gemm", 0, 100, 1, -1, 7);
  add(SpanKind::kKernel, "ncclDevKernel_AllReduce", 50, 200, 2, -1, 9);  // 50..250: hidden 50..100 and 150..180
  add(SpanKind::kKernel, "gemm", 150, 30, 3, -1, 7);
  add(SpanKind::kKernel, "gemm", 160, 10, 4, -1, 8);  // hides nothing more
  add(SpanKind::kKernel, "ncclDevKernel_AllGather", 300, 40, 5, -1, 9);
  add(SpanKind::kCollective, "all_reduce", 400, 10, 64);
  EXPECT_THAT(ask("SELECT side, name, duration_ms, exposed_ms, bytes, stream FROM collective ORDER BY start_ns"),
              ElementsAre("device|ncclDevKernel_AllReduce|0.2|0.12|NULL|9",
                          "device|ncclDevKernel_AllGather|0.04|0.04|NULL|9", "host|all_reduce|0.01|NULL|64|NULL"));
}

TEST_F(TraceRowsTest, OperatorsTellShapesStackAndWhatTheyCompute) {
  const std::string detail =
      R"({"Input Dims":[[2, 3], [3, 4]],"Input type":["float", "float"],"Call stack":"a.py(1): f","Ev Idx":7})";
  add(SpanKind::kOperator, "aten::mm", 0, 10, 1, -1, 1, detail);
  add(SpanKind::kOperator, "aten::relu", 20, 10, 2);
  add(SpanKind::kKernel, "gemm", 30, 10, 5, 1, 7, R"({"grid":[8, 1, 1]})");
  EXPECT_THAT(ask("SELECT shapes, types, stack, gflop, json_extract(arguments, '$.\"Ev Idx\"') FROM operator ORDER BY "
                  "start_ns"),
              ElementsAre("[[2, 3], [3, 4]]|[\"float\",\"float\"]|a.py(1): f|4.8e-08|7", "NULL|NULL|NULL|NULL|NULL"));
  EXPECT_THAT(ask("SELECT arguments FROM kernel"), ElementsAre(R"({"grid":[8, 1, 1]})"));
}

// Of a kernel's own arguments, else of those of the operator that launched it.
TEST_F(TraceRowsTest, CollectivesTellTheirGroupAndSequence) {
  const auto detail = [](int sequence) {
    return format(R"({{"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":8,)"
                  R"("dtype":"BFloat16","Process Group Name":"0","Process Group Description":"default_pg",)"
                  R"("Process Group Ranks":"[0, 1]","Seq":{}}})",
                  sequence);
  };
  add(SpanKind::kOperator, "record_param_comms", 0, 20, 1, -1, 1, detail(40));
  add(SpanKind::kRuntime, "cudaLaunchKernel", 5, 5, 900, 1);
  add(SpanKind::kKernel, "ncclDevKernel_AllReduce", 30, 10, 900, 1, 9);
  add(SpanKind::kKernel, "ncclDevKernel_AllReduce", 50, 10, 901, -1, 9, detail(41));
  EXPECT_THAT(ask("SELECT collective, process_group, group_description, group_size, group_ranks, sequence, dtype, "
                  "in_elements, out_elements, bytes FROM collective ORDER BY start_ns"),
              ElementsAre("allreduce|0|default_pg|8|[0, 1]|40|BFloat16|1000|1000|2000",
                          "allreduce|0|default_pg|8|[0, 1]|41|BFloat16|1000|1000|2000"));
}

// What WHERE says of time changes no answer: who launched a kernel may lie before it.
TEST_F(TraceRowsTest, ARangeOfTimeLosesNoLauncher) {
  add(SpanKind::kOperator, "aten::addmm", 20, 60, 2);
  add(SpanKind::kRuntime, "cudaLaunchKernel", 30, 10, 900, 2);
  add(SpanKind::kKernel, "gemm", 5'000'000, 500, 900, 2, 7);
  EXPECT_THAT(ask("SELECT operator FROM kernel WHERE start_ns > 4000000000"), ElementsAre("aten::addmm"));
}

TEST_F(TraceRowsTest, StepsThatATraceDoesNotMarkAreInferred) {
  for (int i = 0; i < 3; ++i) {
    add(SpanKind::kDataWait, "enumerate(DataLoader)#next", 1000 * i, 300);
    add(SpanKind::kOperator, "aten::linear", 1000 * i + 300, 200);
    add(SpanKind::kOperator, "autograd::engine::evaluate_function: AddmmBackward0", 1000 * i + 500, 300);
    add(SpanKind::kOptimizer, "Optimizer.step#SGD.step", 1000 * i + 800, 190);
  }
  EXPECT_THAT(ask("SELECT step, ms, data_wait_ms, inferred FROM step WHERE step < 2"),
              ElementsAre("0|1|0.3|1", "1|1|0.3|1"));
  EXPECT_THAT(ask("SELECT step FROM operator WHERE name = 'aten::linear' AND step < 2"), ElementsAre("0", "1"));
}

// Files of one import lie on one clock: its second 0 is that of all of them.
TEST_F(TraceRowsTest, FilesOfOneImportHaveOneSecondZero) {
  writer_->put_attribute(kClockAxisAttribute, kAxisOfTheImport);
  add(SpanKind::kOperator, "first", 5'000'000, 10);
  auto later = RecordingWriter::create(folder_->path() / "b.hotlap",
                                       {.id = "01J00000000000000000000002", .node = "n1", .interval_ns = kNsPerS}, {});
  ASSERT_TRUE(later.ok()) << later.error().message;
  (*later)->put_attribute("source.format", "chrome_trace");
  (*later)->put_attribute(kClockAxisAttribute, kAxisOfTheImport);
  (*later)->put_process({.slot = kHost, .pid = 8, .role = ProcessRole::kMain});
  Span span{.start_ns = 7'000'000 * kUs, .duration_ns = kUs, .kind = SpanKind::kOperator, .process = kHost};
  span.name = (*later)->add_name("second");
  (*later)->add_span(span);
  ASSERT_TRUE((*later)->close().ok());
  EXPECT_THAT(ask("SELECT recording, name, start_s FROM operator ORDER BY recording"),
              ElementsAre("1|first|0", "2|second|2"));
}

}  // namespace
}  // namespace hotlap
