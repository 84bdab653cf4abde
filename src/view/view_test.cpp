#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json_reader.h"
#include "base/text.h"
#include "view/analysis_document.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

AnalysisDocument slow_loader() {
  AnalysisDocument d;
  d.run_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  d.run_name = "train.py";
  d.grade = "A";
  d.has_gpu = true;
  d.verdict = VerdictKind::kFinding;
  d.steps = {.count = 1'240,
             .count_all = 1'260,
             .mean_ms = 210.0,
             .median_ms = 210.0,
             .breakdown = {.data_wait = 55.0, .checkpoint = 0.0}};
  Finding finding;
  finding.rule = "InputBound";
  finding.certainty = Certainty::kCertain;
  finding.cause = "Loader too slow, too few workers";
  finding.lost_pct = 55;
  finding.why = {"a batch costs 420 ms of worker time", "2 workers give one per 210 ms"};
  finding.advice = {{.change = "DataLoader(num_workers=6)",
                     .step_ms_low = 98,
                     .step_ms_high = 112,
                     .basis = Basis::kModel,
                     .note = "now 2; more than 6 adds nothing"}};
  finding.look_alikes_excluded = {"storage (workers 96 % on CPU)", "hot core"};
  d.findings = {finding};
  return d;
}

TEST(VerdictText, AFindingHasFiveLinesInOrder) {
  AnalysisDocument d = slow_loader();
  d.price = Price{.per_hour = 1.515, .source = "--price"};
  EXPECT_EQ(verdict_text(d),
            "Loader too slow, too few workers \u00B7 GPU waits 55 % of each step \u00B7 certain (1,240 steps)\n"
            "  why   a batch costs 420 ms of worker time; 2 workers give one per 210 ms\n"
            "  do    DataLoader(num_workers=6)   (now 2; more than 6 adds nothing)\n"
            "  gain  step 210 -> 98-112 ms (model); 1,000 steps: 3.5 min -> 98-112 s,\n"
            "        saves $0.041-$0.047 at $1.51/h (--price)\n"
            "  not   storage (workers 96 % on CPU), hot core");
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Every word in its order, whatever the lines.
std::string words_of(std::string_view text) {
  std::string words;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\n';
    if (!is_blank || (!words.empty() && words.back() != ' ')) words += is_blank ? ' ' : c;
  }
  return words;
}

TEST(VerdictText, WhatDoesNotFitGoesOnBelowItsText) {
  AnalysisDocument d = slow_loader();
  d.findings[0].why = {std::string(90, 'a'), "\u00E9\u00E9 \u00E9\u00E9", std::string(120, 'b'), "of d"};
  const std::string text = verdict_text(d);
  EXPECT_NE(text.find("\n  why   " + std::string(90, 'a') + "; \u00E9\u00E9 \u00E9\u00E9;\n        " +
                      std::string(120, 'b') + ";\n        of d\n  do    "),
            std::string::npos)
      << text;
}

// At every length: no line too wide that could be broken, no word lost.
TEST(VerdictText, LinesOfAnyLengthAreBrokenAtTheirColumn) {
  AnalysisDocument d = slow_loader();
  std::string why;
  for (int i = 0; i < 400; ++i) {
    why += i % 7 == 3 ? " " : i % 31 == 30 ? "; " : "\u00E9";
    d.findings[0].why = {why + "."};
    const std::string text = verdict_text(d);
    std::string_view rest(text);
    for (std::string_view line; next_line(rest, line);) EXPECT_LE(columns_of(line), kVerdictColumns) << line;
    EXPECT_NE((words_of(text) + " ").find(words_of(" why " + why + ". do DataLoader")), std::string::npos) << text;
  }
}

// How many steps are left nobody knows; an epoch is what people plan with, once one has been seen.
TEST(VerdictText, AGainIsToldPerEpochOnceOneHasEnded) {
  AnalysisDocument d = slow_loader();
  d.price = Price{.per_hour = 1.515, .source = "--price"};
  d.steps.epoch_steps = 2'000;
  const std::string text = words_of(verdict_text(d));
  EXPECT_NE(text.find("step 210 -> 98-112 ms (model); an epoch: 7.0 min -> 3.3-3.7 min, saves $0.082-$0.094 at"),
            std::string::npos)
      << text;
  d.steps.epoch_steps = 0.4;  // steps that no loader made
  EXPECT_NE(verdict_text(d).find("1,000 steps"), std::string::npos);
}

TEST(VerdictText, WithoutAGpuItIsTheTrainingThatWaits) {
  AnalysisDocument d = slow_loader();
  d.has_gpu = false;
  EXPECT_NE(verdict_text(d).find("training waits 55 %"), std::string::npos);
}

// An unpredictable gain is said, never invented.
TEST(VerdictText, AGainThatIsNotKnownSaysSo) {
  AnalysisDocument d = slow_loader();
  d.findings[0].advice[0].step_ms_low.reset();
  EXPECT_NE(verdict_text(d).find("gain  not known"), std::string::npos);
}

TEST(VerdictText, TheOtherAnswers) {
  AnalysisDocument d;
  d.verdict = VerdictKind::kTooShort;
  d.steps.count = 12;
  d.seen = {"CPU 93 % busy"};
  EXPECT_EQ(verdict_text(d), "Too short to judge: 12 steady steps, 30 are needed\n  seen  CPU 93 % busy");
  d.verdict = VerdictKind::kCannotTell;
  d.cannot_tell = {"the hook was not loaded"};
  EXPECT_EQ(verdict_text(d), "Can't tell, because the hook was not loaded\n  seen  CPU 93 % busy");
  d.verdict = VerdictKind::kHealthy;
  d.steps = {.count = 4'310, .mean_ms = 95.2, .breakdown = {.data_wait = 1.1}};
  d.left_to_win_pct = 3.4;
  d.rules_run = 1;
  d.rules_not_run = {{"HotCore", {"core_use"}}};
  EXPECT_EQ(
      verdict_text(d),
      "Healthy: nothing found worth changing \u00B7 training waits 1.1 % for data \u00B7 4,310 steps, 95 ms each\n"
      "  left  all waits and pauses together: at most 3.4 % to win\n"
      "  blind 1 of 2 rules ran; HotCore needs core_use");
}

TEST(VerdictText, RecordedTextNeverReachesATerminalRaw) {
  AnalysisDocument d = slow_loader();
  d.findings[0].cause = "\x1b[2Jevil";
  EXPECT_EQ(verdict_text(d).find('\x1b'), std::string::npos);
}

TEST(FooterLines, PredictionAgainstWhatWasReached) {
  AnalysisDocument d = slow_loader();
  d.steps.mean_ms = 104;
  d.previous = PreviousRun{.step_ms = 210,
                           .change_pct = -50.5,
                           .change_pct_low = -52,
                           .change_pct_high = -48,
                           .word = "faster",
                           .predicted_ms_low = 98,
                           .predicted_ms_high = 112,
                           .predicted_change = "DataLoader(num_workers=6)"};
  const auto lines = footer_lines(d);
  EXPECT_THAT(lines,
              testing::ElementsAre("vs previous run of this script: step 210 -> 104 ms, -50 % (-52 to -48): faster;",
                                   "    predicted for DataLoader(num_workers=6): 98-112 ms, inside"));
  d.steps.mean_ms = 130;
  EXPECT_THAT(footer_lines(d), testing::Contains(testing::HasSubstr("worse than predicted")));
}

TEST(AnalysisJson, MissingIsNullAndZeroIsZero) {
  const auto parsed = JsonDocument::parse(to_json(slow_loader()));
  ASSERT_TRUE(parsed.ok());
  const JsonValue breakdown = parsed->root()["steps"]["breakdown_pct"];
  EXPECT_TRUE(breakdown["communication"].is_null());
  EXPECT_EQ(breakdown["checkpoint"].number(), 0.0);
  EXPECT_EQ(parsed->root()["schema"].integer(), 1);
  const JsonValue finding = parsed->root()["findings"].items().at(0);
  EXPECT_EQ(finding["from_ns"].text(), "0");
  EXPECT_TRUE(finding["money"].is_null());
  EXPECT_TRUE(finding["where"]["rank"].is_null());
}

}  // namespace
}  // namespace hotlap
