// Windows of the profiler in a run: what is inside their steps counts, their steps and waits do not, and the time
// between them belongs to nothing.
#include <gtest/gtest.h>

#include <array>

#include "analysis/engine.h"
#include "analysis/registry.h"
#include "base/clock.h"
#include "support/fake_recording.h"

namespace hotlap {
namespace {

class ProfileWindows : public testing::Test {
 protected:
  static constexpr std::int64_t kStepNs = 100 * kNsPerMs;

  // 100 steps of 100 ms with the profiler on in three of them, each 30 ms longer, and pauses of 40 ms.
  void record() {
    ran_.add_process({.pid = 7, .role = ProcessRole::kMain, .has_hook = true});
    ran_.add_attribute("process.main.profile.measured",
                       R"({"first_step": 49, "steps": 1, "ms": 130, "usual_step_ms": 100, "bytes": 1000})");
    ran_.add_attribute("process.main.profile.window.1",
                       R"({"first_step": 50, "steps": 3, "ms": 390, "usual_step_ms": 100, "bytes": 3000})");
    const std::uint32_t loader = ran_.add_name("loader 1 (Images)");
    std::int64_t t_ns = kNsPerS;
    for (std::int64_t step = 0; step < 100; ++step) {
      if (step == 49 || step == 50 || step == 53) t_ns = pause(t_ns, step, step != 53);
      const std::int64_t took_ns = kStepNs + (step >= 49 && step < 53 ? 30 * kNsPerMs : 0);
      add(SpanKind::kDataWait, t_ns, 20 * kNsPerMs, step, loader);
      add(SpanKind::kStep, t_ns, took_ns, step);
      t_ns += took_ns;
    }
  }
  std::int64_t pause(std::int64_t t_ns, std::int64_t step, bool is_on) {
    Span span{.start_ns = t_ns, .duration_ns = 40 * kNsPerMs, .kind = SpanKind::kProfilePause, .process = 1};
    span.step = step;
    span.value_a = is_on ? 1 : 0;
    ran_.add_span(span);
    return t_ns + span.duration_ns;
  }
  void add(SpanKind kind, std::int64_t start_ns, std::int64_t ns, std::int64_t step, std::uint32_t name = 0) {
    ran_.add_span({.start_ns = start_ns, .duration_ns = ns, .kind = kind, .process = 1, .name = name, .step = step});
  }
  // What the profiler saw, at times of its own.
  static void look(FakeRecording& window, std::int64_t first_step) {
    for (const auto& [key, text] : {std::pair{"source.format", "chrome_trace"}, std::pair{"profile.window", "1"}}) {
      window.add_attribute(key, text);
      window.info_to_fill().attributes[key] = text;
    }
    window.add_process({.pid = 7, .role = ProcessRole::kMain});
    window.add_process({.role = ProcessRole::kOther});
    const std::uint32_t linear = window.add_name("aten::linear");
    const std::uint32_t gemm = window.add_name("sm90_xmma_gemm_bf16");
    const std::uint32_t all_reduce = window.add_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    for (std::int64_t step = first_step; step < first_step + 3; ++step) {
      const std::int64_t t_ns = 1'000 * kNsPerS + step * 130 * kNsPerMs;
      window.add_span(
          {.start_ns = t_ns, .duration_ns = 130 * kNsPerMs, .kind = SpanKind::kStep, .process = 1, .step = step});
      window.add_span({.start_ns = t_ns, .duration_ns = 20 * kNsPerMs, .kind = SpanKind::kDataWait, .process = 1});
      window.add_span({.start_ns = t_ns + 30 * kNsPerMs,
                       .duration_ns = 10 * kNsPerMs,
                       .kind = SpanKind::kOperator,
                       .process = 1,
                       .thread = 1,
                       .name = linear});
      add_kernel(window, gemm, t_ns + 40 * kNsPerMs, 50 * kNsPerMs);
      add_kernel(window, all_reduce, t_ns + 90 * kNsPerMs, 40 * kNsPerMs);
    }
  }
  static void add_kernel(FakeRecording& window, std::uint32_t name, std::int64_t start_ns, std::int64_t ns) {
    window.add_span({.start_ns = start_ns, .duration_ns = ns, .kind = SpanKind::kKernel, .process = 2, .name = name});
  }
  FactTable facts(std::span<RecordingReader* const> recordings) const {
    RunAnalysis analysis(run_, all_analyzers());
    EXPECT_TRUE(analysis.advance(recordings).ok());
    analysis.finish();
    EXPECT_EQ(analysis.processes().size(), 1U);
    return analysis.facts();
  }

  RunInfo run_;
  FakeRecording ran_;
  FakeRecording window_;
  FakeRecording later_window_;
};

TEST_F(ProfileWindows, StepsUnderTheProfilerAreInNoStatistics) {
  record();
  const std::array<RecordingReader*, 1> alone{&ran_};
  const FactTable without = facts(alone);
  const Fact* steps = without.find("steps.summary");
  ASSERT_NE(steps, nullptr);
  EXPECT_EQ(steps->number("count"), 96);
  EXPECT_LT(steps->number("p99_ms").value_or(1e9), 110);
}

TEST_F(ProfileWindows, WhatIsInsideComesFromThemAlone) {
  record();
  look(window_, 50);
  const std::array<RecordingReader*, 2> both{&ran_, &window_};
  const FactTable facts_of_both = facts(both);
  EXPECT_EQ(facts_of_both.find("steps.summary")->number("count"), 96);
  const Fact* summary = facts_of_both.find("operators.summary");
  ASSERT_NE(summary, nullptr);
  EXPECT_LE(summary->number("self_ms").value_or(1e9), 3 * (10 + 20) + 0.1);  // not the waits of the whole run
  bool has_linear = false;
  for (const Fact* one : facts_of_both.all("operators.operator")) {
    has_linear |= one->text("name") == "aten::linear" && one->number("calls") == 3;
    EXPECT_NE(one->text("name"), "loader 1 (Images)");
  }
  EXPECT_TRUE(has_linear);
}

TEST_F(ProfileWindows, ADeviceIsOneInAllOfThemAndDoesNotIdleBetween) {
  record();
  look(window_, 50);
  look(later_window_, 80);
  const std::array<RecordingReader*, 3> all{&ran_, &window_, &later_window_};
  const FactTable found = facts(all);
  ASSERT_EQ(found.all("device.time").size(), 1U);
  const Fact& device = *found.all("device.time").front();
  EXPECT_EQ(device.number("steps"), 6);
  EXPECT_EQ(device.number("wall_ms"), 2 * (2 * 130 + 90));
  EXPECT_EQ(device.number("exposed_communication_ms"), 6 * 40);
  EXPECT_EQ(device.number("idle_ms"), 2 * 2 * 40);
}

TEST_F(ProfileWindows, TheirCostIsTold) {
  record();
  const std::array<RecordingReader*, 1> alone{&ran_};
  const FactTable all = facts(alone);
  const Fact* cost = all.find("profile.summary");
  ASSERT_NE(cost, nullptr);
  EXPECT_EQ(cost->number("windows"), 1);
  EXPECT_EQ(cost->number("steps"), 3);
  EXPECT_EQ(cost->number("first_step"), 50);
  EXPECT_EQ(cost->number("pause_ms"), 120);
  EXPECT_EQ(cost->number("longest_pause_ms"), 40);
  EXPECT_EQ(cost->number("slower_ms"), 120);
  EXPECT_EQ(cost->number("bytes"), 3000);
  EXPECT_NEAR(cost->number("cost_pct").value_or(0), 100 * 240.0 / 10'240, 0.1);
  EXPECT_FALSE(cost->text("refused"));
}

TEST_F(ProfileWindows, ARefusalIsTold) {
  ran_.add_process({.pid = 7, .role = ProcessRole::kMain, .has_hook = true});
  ran_.add_attribute("process.main.profile.refused", R"({"why": "a debugger", "step": 9})");
  const std::array<RecordingReader*, 1> alone{&ran_};
  const FactTable all = facts(alone);
  const Fact* fact = all.find("profile.summary");
  ASSERT_NE(fact, nullptr);
  EXPECT_EQ(fact->text("refused"), "a debugger");
  EXPECT_EQ(fact->number("windows"), 0);
  EXPECT_FALSE(fact->number("cost_pct"));
}

}  // namespace
}  // namespace hotlap
