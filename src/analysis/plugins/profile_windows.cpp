// What looking into steps cost: windows of the framework's profiler that the hook switched on, the pauses of the job
// for that, and why none was made where one was asked for.
#include <algorithm>
#include <array>

#include "analysis/analyzer.h"
#include "analysis/step_table.h"
#include "base/clock.h"
#include "base/json_reader.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"windows", "{window}", "windows that were recorded"},
    FactField{"steps", "{step}", "steps in them"},
    FactField{"first_step", "{step}", "the first step of the last window"},
    FactField{"pause_ms", "ms", "the job stood still in all while the profiler was switched and its trace written"},
    FactField{"longest_pause_ms", "ms", "the longest of these pauses"},
    FactField{"slower_ms", "ms", "the steps looked into took so much longer than the usual one, in all"},
    FactField{"cost_pct", "%", "pauses and slower steps, of the time since the first step"},
    FactField{"bytes", "By", "of the traces"},
    FactField{"refused", "text", "why a window that was asked for was not made, the last time"},
};
constexpr std::array kSchemas{FactSchema{"profile.summary", "looking into steps: windows and their cost", kFields}};
constexpr std::array kSpans{SpanKind::kProfilePause};

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }

class ProfileWindowsAnalyzer final : public Analyzer {
 public:
  explicit ProfileWindowsAnalyzer(const RunDescription& run) : table_(run.steps), run_(run) {}

  void on_spans(std::span<const Span> spans) override {
    for (const Span& span : spans) {
      if (span.duration_ns < 0) continue;
      ++pauses_;
      pause_ns_ += span.duration_ns;
      longest_ns_ = std::max(longest_ns_, span.duration_ns);
    }
  }

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const ProfileWindowsAnalyzer&>(other);
    pauses_ += from.pauses_;
    pause_ns_ += from.pause_ns_;
    longest_ns_ = std::max(longest_ns_, from.longest_ns_);
    others_.add(from.others_);
    others_.add(from.told());
  }

  void snapshot(FactTable& out) const override {
    Told all = told();
    all.add(others_);
    if (pauses_ == 0 && all.refused.empty()) return;
    Fact fact{.kind = "profile.summary"};
    fact.set("windows", static_cast<double>(all.windows)).set("steps", static_cast<double>(all.steps));
    if (all.windows > 0) fact.set("first_step", static_cast<double>(all.first_step));
    fact.set("pause_ms", ms(pause_ns_)).set("longest_pause_ms", ms(longest_ns_));
    if (all.steps > 0 && all.is_slower_known) fact.set("slower_ms", all.slower_ms);
    set_cost(all, fact);
    if (all.windows > 0) fact.set("bytes", all.bytes);
    if (!all.refused.empty()) fact.set_text("refused", all.refused);
    out.add(std::move(fact));
  }

 private:
  // By the hooks' own descriptions of their windows.
  struct Told {
    std::int64_t windows = 0;
    std::int64_t steps = 0;
    std::int64_t first_step = 0;
    double slower_ms = 0;  // of measured steps too
    bool is_slower_known = false;
    double bytes = 0;
    std::string refused;

    void add(const Told& other) {
      windows += other.windows;
      steps += other.steps;
      first_step = std::max(first_step, other.first_step);
      slower_ms += other.slower_ms;
      is_slower_known |= other.is_slower_known;
      bytes += other.bytes;
      if (!other.refused.empty()) refused = other.refused;
    }
  };

  Told told() const {
    Told out;
    for (const auto& [key, json] : run_.recording->attributes) {
      if (!key.starts_with("process.")) continue;
      const std::size_t at = key.rfind(".profile.");
      if (at == std::string::npos) continue;
      const std::string_view what = std::string_view(key).substr(at + std::string_view(".profile.").size());
      const Result<JsonDocument> document = JsonDocument::parse(json);
      if (!document.ok()) continue;
      const JsonValue root = document->root();
      if (what == "refused") {
        out.refused = root["why"].text().value_or("");
      } else if (what == "measured" || what.starts_with("window.")) {
        take_window(root, what != "measured", out);
      }
    }
    return out;
  }

  static void take_window(const JsonValue& root, bool is_kept, Told& out) {
    const double steps = root["steps"].number().value_or(0);
    const auto took_ms = root["ms"].number();
    const auto usual_ms = root["usual_step_ms"].number();
    if (took_ms && usual_ms && steps > 0) {
      out.slower_ms += std::max(0.0, *took_ms - steps * *usual_ms);
      out.is_slower_known = true;
    }
    if (!is_kept) return;
    ++out.windows;
    out.steps += static_cast<std::int64_t>(steps);
    out.first_step = std::max(out.first_step, static_cast<std::int64_t>(root["first_step"].number().value_or(0)));
    out.bytes += root["bytes"].number().value_or(0);
  }

  void set_cost(const Told& all, Fact& fact) const {
    const auto entries = table_->entries();
    if (entries.empty()) return;
    const StepStatistics& steps = *entries.front().steps;
    const double since_ms = ms(steps.end_ns() - steps.begin_ns());
    if (since_ms > 0) fact.set("cost_pct", std::min(100.0, 100 * (ms(pause_ns_) + all.slower_ms) / since_ms));
  }

  const StepTable* table_;
  const RunDescription& run_;
  std::int64_t pauses_ = 0;
  std::int64_t pause_ns_ = 0;
  std::int64_t longest_ns_ = 0;
  Told others_;  // of recordings that were merged in
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ProfileWindowsAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_profile_windows{.id = "profile_windows",
                                                             .summary = "What looking into steps cost the job.",
                                                             .produces = kSchemas,
                                                             .spans = kSpans,
                                                             .open = open};

}  // namespace hotlap
