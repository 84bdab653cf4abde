// AnalysisDocument → JSON of schema 1. Absent values are null; nanoseconds travel as decimal text, since a JSON number
// loses them.
#include <map>

#include "base/format.h"
#include "base/json_writer.h"
#include "cost/machine_price.h"
#include "cost/price.h"
#include "view/analysis_document.h"

namespace hotlap {
namespace {

void write_breakdown(JsonWriter& w, const Breakdown& b) {
  w.begin_object();
  w.field("data_wait", b.data_wait).field("forward", b.forward).field("backward", b.backward);
  w.field("optimizer", b.optimizer).field("communication", b.communication).field("checkpoint", b.checkpoint);
  w.field("gc", b.gc).field("evaluation", b.evaluation).field("compile", b.compile).field("hook", b.hook);
  w.field("other", b.other);
  w.end_object();
}

void write_texts(JsonWriter& w, const std::vector<std::string>& texts) {
  w.begin_array();
  for (const std::string& text : texts) w.value(std::string_view(text));
  w.end_array();
}

void write_text_or_null(JsonWriter& w, std::string_view name, std::string_view text) {
  w.key(name);
  text.empty() ? w.null() : w.value(std::string_view(text));
}

void write_where(JsonWriter& w, const Where& where) {
  w.begin_object();
  write_text_or_null(w, "node", where.node);
  w.key("rank").value(where.rank ? std::optional(std::int64_t{*where.rank}) : std::nullopt);
  write_text_or_null(w, "device", where.device);
  write_text_or_null(w, "process", where.process);
  w.end_object();
}

void write_advice(JsonWriter& w, const Advice& advice) {
  w.begin_object().field("change", std::string_view(advice.change));
  w.field("step_ms_low", advice.step_ms_low).field("step_ms_high", advice.step_ms_high);
  w.field("basis", to_string(advice.basis));
  write_text_or_null(w, "note", advice.note);
  write_text_or_null(w, "gain", advice.gain);
  w.end_object();
}

void write_money(JsonWriter& w, const std::optional<Money>& money) {
  if (!money) {
    w.null();
    return;
  }
  w.begin_object().field("amount", money->amount).field("currency", std::string_view(money->currency));
  w.field("basis", std::string_view(money->basis)).end_object();
}

void write_finding(JsonWriter& w, const Finding& finding, bool is_small) {
  w.begin_object();
  w.field("id", std::string_view(finding.id())).field("rule", std::string_view(finding.rule));
  w.field("severity", to_string(finding.severity)).field("state", to_string(finding.state));
  w.field("certainty", to_string(finding.certainty));
  w.key("where");
  write_where(w, finding.where);
  w.field("from_ns", std::string_view(std::to_string(finding.from_ns)));
  w.field("to_ns", std::string_view(std::to_string(finding.to_ns)));
  w.field("cause", std::string_view(finding.cause));
  w.key("why");
  write_texts(w, finding.why);
  w.key("evidence").begin_object();
  for (const auto& [name, value] : finding.evidence) {
    w.key(name);
    std::visit([&](const auto& content) { w.value(content); }, value);
  }
  w.end_object();
  w.field("lost_s", finding.lost_s).field("lost_pct", finding.lost_pct);
  write_text_or_null(w, "lost_of", finding.lost_pct ? to_string(finding.lost_of) : std::string_view());
  w.key("money");
  write_money(w, finding.money);
  w.key("explains");
  write_texts(w, finding.explains);
  write_text_or_null(w, "explained_by", finding.explained_by);
  w.field("small", is_small);
  w.key("look_alikes_excluded");
  write_texts(w, finding.look_alikes_excluded);
  w.key("advice").begin_array();
  for (const Advice& advice : finding.advice) write_advice(w, advice);
  w.end_array();
  w.key("limits");
  write_texts(w, finding.limits);
  w.end_object();
}

void write_run(JsonWriter& w, const AnalysisDocument& d) {
  w.key("run").begin_object();
  w.field("id", std::string_view(d.run_id)).field("name", std::string_view(d.run_name));
  w.field("nodes", d.nodes).field("attempts", d.attempts).field("duration_s", d.duration_s);
  w.field("status", to_string(d.status)).field("grade", std::string_view(d.grade));
  w.field("cpu_hours", d.cpu_hours).field("gpu_hours", d.gpu_hours);
  w.key("price");
  if (d.price) {
    w.begin_object().field("per_hour", d.price->per_hour).field("currency", std::string_view(d.price->currency));
    w.field("source", std::string_view(d.price->source)).end_object();
  } else {
    w.null();
  }
  w.end_object();
}

void write_steps(JsonWriter& w, const StepsDocument& steps) {
  w.key("steps").begin_object();
  w.field("count", steps.count).field("count_all", steps.count_all);
  w.field("mean_ms", steps.mean_ms).field("half_width_ms", steps.half_width_ms).field("median_ms", steps.median_ms);
  w.field("p90_ms", steps.p90_ms).field("p99_ms", steps.p99_ms).field("samples_per_step", steps.samples_per_step);
  w.field("samples_per_s", steps.samples_per_s).field("tokens_per_s", steps.tokens_per_s);
  w.field("loader_workers", steps.loader_workers).field("inferred", steps.is_inferred);
  w.key("breakdown_pct");
  write_breakdown(w, steps.breakdown);
  if (!steps.breakdown.named.empty()) {
    w.key("named_pct").begin_object();
    for (const auto& [name, share] : steps.breakdown.named) w.field(name, share);
    w.end_object();
  }
  w.end_object();
}

// By kind; only where there are any.
void write_facts(JsonWriter& w, const std::vector<Fact>& facts) {
  if (facts.empty()) return;
  std::map<std::string_view, std::vector<const Fact*>> by_kind;
  for (const Fact& fact : facts) by_kind[fact.kind].push_back(&fact);
  w.key("facts").begin_object();
  for (const auto& [kind, all] : by_kind) {
    w.key(kind).begin_array();
    for (const Fact* fact : all) {
      w.begin_object().key("where");
      write_where(w, fact->where);
      for (const auto& [name, value] : fact->fields) {
        w.key(name);
        std::visit([&](const auto& content) { w.value(content); }, value);
      }
      w.end_object();
    }
    w.end_array();
  }
  w.end_object();
}

void write_previous(JsonWriter& w, const std::optional<PreviousRun>& previous) {
  w.key("previous");
  if (!previous) {
    w.null();
    return;
  }
  w.begin_object();
  w.field("id", std::string_view(previous->id)).field("name", std::string_view(previous->name));
  w.field("step_ms", previous->step_ms).field("change_pct", previous->change_pct);
  w.field("change_pct_low", previous->change_pct_low).field("change_pct_high", previous->change_pct_high);
  w.field("word", std::string_view(previous->word));
  w.field("predicted_ms_low", previous->predicted_ms_low).field("predicted_ms_high", previous->predicted_ms_high);
  write_text_or_null(w, "predicted_change", previous->predicted_change);
  w.end_object();
}

void write_range(JsonWriter& w, std::string_view name, const std::optional<SecondsRange>& range,
                 const std::optional<Price>& price) {
  w.key(name);
  if (!range) {
    w.null();
    return;
  }
  const auto cost = [&](double seconds) {
    return price ? std::optional(money_for(seconds, *price).amount) : std::nullopt;
  };
  w.begin_object().field("low_s", range->low).field("high_s", range->high);
  w.field("low_cost", cost(range->low)).field("high_cost", cost(range->high)).end_object();
}

void write_remaining(JsonWriter& w, const AnalysisDocument& d) {
  w.key("remaining");
  if (!d.remaining) {
    w.null();
    return;
  }
  const Remaining& r = *d.remaining;
  w.begin_object().field("steps_total", r.steps_total).field("steps_from", std::string_view(r.steps_from));
  w.field("steps_done", r.steps_done).field("steps_left", r.steps_left);
  const auto price = price_of_nodes(d.price, d.nodes);
  write_range(w, "as_is", r.as_is_s, price);
  write_text_or_null(w, "change", r.change);
  write_range(w, "with_change", r.with_fix_s, price);
  write_range(w, "restart", r.restart_s, price);
  w.field("redone_steps", r.restart_s ? std::optional(r.redone_steps) : std::nullopt);
  w.field("checkpoint_seen", r.restart_s ? std::optional(r.has_checkpoint) : std::nullopt);
  w.field("start_up_s", r.restart_s ? std::optional(r.start_up_s) : std::nullopt);
  write_text_or_null(w, "better", r.better);
  w.end_object();
}

void write_losses(JsonWriter& w, const std::vector<Loss>& losses) {
  w.key("losses").begin_array();
  for (const Loss& loss : losses) {
    w.begin_object().field("counter", std::string_view(loss.counter)).field("count", loss.count);
    w.key("first_offset").value(loss.first_offset >= 0 ? std::optional(loss.first_offset) : std::nullopt);
    w.field("help", std::string_view(loss.help)).end_object();
  }
  w.end_array();
}

// Only traces have them: a run without one keeps the document it had.
void write_inside(JsonWriter& w, const std::vector<Fact>& facts) {
  if (facts.empty()) return;
  w.key("inside").begin_array();
  for (const Fact& fact : facts) {
    w.begin_object().field("fact", fact.kind).key("where");
    write_where(w, fact.where);
    w.key("fields").begin_object();
    for (const auto& [name, value] : fact.fields) {
      w.key(name);
      std::visit([&](const auto& content) { w.value(content); }, value);
    }
    w.end_object().end_object();
  }
  w.end_array();
}

void write_rules(JsonWriter& w, const AnalysisDocument& d) {
  w.field("rules_run", d.rules_run);
  w.key("rules_not_run").begin_array();
  for (const RuleNotRun& rule : d.rules_not_run) {
    w.begin_object().field("rule", std::string_view(rule.rule)).key("missing");
    write_texts(w, rule.missing);
    w.end_object();
  }
  w.end_array();
}

}  // namespace

std::string_view to_string(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kFinding: return "finding";
    case VerdictKind::kHealthy: return "healthy";
    case VerdictKind::kCannotTell: return "cannot_tell";
    case VerdictKind::kTooShort: return "too_short";
  }
  return "cannot_tell";
}

std::string to_json(const AnalysisDocument& d) {
  JsonWriter w(JsonWriter::Style::kPretty);
  w.begin_object().field("schema", kAnalysisSchema);
  write_run(w, d);
  w.key("verdict").begin_object();
  w.field("kind", to_string(d.verdict)).field("text", std::string_view(d.verdict_text));
  w.key("because");
  write_texts(w, d.cannot_tell);
  w.key("seen");
  write_texts(w, d.seen);
  w.end_object();
  write_steps(w, d.steps);
  write_facts(w, d.facts);
  w.key("findings").begin_array();
  for (const Finding& finding : d.findings) write_finding(w, finding, d.small.contains(finding.id()));
  w.end_array();
  write_rules(w, d);
  write_inside(w, d.inside);
  if (d.resolution) {
    w.key("resolution").begin_object();
    w.field("full_s", d.resolution->full_s).field("minutes_s", d.resolution->minutes_s).end_object();
  }
  write_losses(w, d.losses);
  w.key("problems");
  write_texts(w, d.problems);
  w.key("hook").begin_object().field("hooked", d.hook.hooked).field("python_processes", d.hook.python_processes);
  write_text_or_null(w, "because", d.hook.because);
  w.end_object();
  w.key("self").begin_object();
  w.field("overhead_pct_low", d.self.overhead_pct_low).field("overhead_pct_high", d.self.overhead_pct_high);
  w.field("hook_us_per_step", d.self.hook_us_per_step);
  w.end_object();
  write_previous(w, d.previous);
  write_remaining(w, d);
  w.end_object();
  return w.take() + "\n";
}

}  // namespace hotlap
