// The answer about a run as a page of Markdown: for a pull request, a wiki, a mail.
#include <ostream>

#include "base/format.h"
#include "base/text.h"
#include "cost/machine_price.h"
#include "cost/price.h"
#include "report/exporter.h"
#include "report/markdown.h"
#include "rules/words.h"
#include "view/fact_words.h"
#include "view/run_settings.h"
#include "view/verdict_text.h"

namespace hotlap {
namespace {

constexpr int kBarColumns = 30;

// Inside a block of code nothing ends it but its own fence.
void write_block(std::string_view text, std::ostream& out) {
  out << "```text\n";
  const std::string clean = strip_control(to_valid_utf8(text));
  std::string_view rest(clean);
  for (std::string_view line; next_line(rest, line);) out << (line.starts_with("```") ? " " : "") << line << '\n';
  out << "```\n";
}

std::string bar(double share_pct) {
  std::string text;
  const int cells = static_cast<int>(share_pct / 100 * kBarColumns + 0.5);
  for (int i = 0; i < cells && i < kBarColumns; ++i) text += "\u2588";
  return text;
}

std::string duration(double seconds) { return format_duration(static_cast<std::int64_t>(seconds * 1e9)); }

void write_head(const AnalysisDocument& d, const RunInfo& run, std::ostream& out) {
  out << format("# {}\n\n", markdown_text(d.run_name.empty() ? d.run_id : d.run_name));
  write_block(d.verdict_text, out);
  out << "\n| | |\n|---|---|\n";
  const auto line = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) out << format("| {} | {} |\n", name, text);
  };
  line("run", markdown_code(d.run_id));
  std::string command;
  for (const std::string& word : run.command) command += (command.empty() ? "" : " ") + word;
  line("command", command.empty() ? "" : markdown_code(command));
  line("state", std::string(to_string(d.status)));
  if (d.duration_s) line("duration", duration(*d.duration_s));
  line("node", markdown_text(run.node) + (d.nodes > 1 ? format(" and {} more", d.nodes - 1) : ""));
  if (d.price) {
    line("price",
         format("{}/h ({})", format_money(d.price->per_hour, d.price->currency), markdown_text(d.price->source)));
    if (d.duration_s) {
      const Money money = money_for(*d.duration_s, price_of_nodes(*d.price, d.nodes));
      line("cost so far", format_money(money.amount, money.currency));
    }
  }
  line("recorded by", format("hotlap {}", markdown_text(run.hotlap_version)));
}

void write_steps(const StepsDocument& steps, std::ostream& out) {
  out << "\n## Steps\n\n";
  if (!steps.mean_ms) {
    out << "No step times.\n";
    return;
  }
  out << format("{} typical steps of {}: **{} ms**", shown_count(static_cast<std::uint64_t>(steps.count)),
                shown_count(static_cast<std::uint64_t>(steps.count_all)), figure(*steps.mean_ms));
  if (steps.half_width_ms) out << format(" \u00B1 {}", figure(*steps.half_width_ms));
  if (steps.median_ms && steps.p90_ms && steps.p99_ms) {
    out << format("; median {}, 90 % below {}, 99 % below {}", figure(*steps.median_ms), figure(*steps.p90_ms),
                  figure(*steps.p99_ms));
  }
  if (steps.samples_per_s) out << format("; {} samples/s", figure(*steps.samples_per_s));
  if (steps.tokens_per_s) out << format("; {} tokens/s", figure(*steps.tokens_per_s));
  out << (steps.is_inferred ? "; inferred from the loader's cadence.\n" : ".\n");
  out << "\n| part | share | ms | |\n|---|---:|---:|---|\n";
  const Breakdown& b = steps.breakdown;
  for (const auto& [name, share] :
       {std::pair{"waiting for data", b.data_wait}, std::pair{"forward", b.forward}, std::pair{"backward", b.backward},
        std::pair{"optimizer", b.optimizer}, std::pair{"communication", b.communication},
        std::pair{"checkpoint", b.checkpoint}, std::pair{"garbage collection", b.gc},
        std::pair{"evaluation", b.evaluation}, std::pair{"compilation", b.compile}, std::pair{"hotlap", b.hook},
        std::pair{"other", b.other}}) {
    if (share) {
      out << format("| {} | {:.1f} % | {} | {} |\n", name, *share, figure(*share / 100 * *steps.mean_ms), bar(*share));
    } else {
      out << format("| {} | not measured | | |\n", name);
    }
  }
  for (const auto& [name, share] : b.named) {
    out << format("| of it \u201C{}\u201D | {:.1f} % | {} | {} |\n", markdown_text(name), share,
                  figure(share / 100 * *steps.mean_ms), bar(share));
  }
}

void write_finding(const Finding& finding, const StepsDocument& steps, std::ostream& out) {
  out << format("\n### {}\n\n{}, {}, {}", markdown_text(finding.cause), markdown_text(finding.id()),
                to_string(finding.severity), to_string(finding.certainty));
  if (finding.lost_pct) out << format(", {} % of the {}", figure(*finding.lost_pct), to_string(finding.lost_of));
  if (finding.lost_s) out << format(", {} so far", duration(*finding.lost_s));
  if (finding.money) out << format(" ({})", format_money(finding.money->amount, finding.money->currency));
  if (!finding.explained_by.empty()) out << format("; the same time as {}", markdown_text(finding.explained_by));
  out << ".\n\n";
  for (const std::string& why : finding.why) out << format("- {}\n", markdown_text(why));
  if (!finding.advice.empty()) out << "\n| change | step | basis | note |\n|---|---|---|---|\n";
  for (const Advice& advice : finding.advice) {
    std::string gain = markdown_text(advice.gain);
    if (gain.empty() && advice.step_ms_low && advice.step_ms_high) {
      gain = format("{} \u2192 {}\u2013{} ms", steps.mean_ms ? figure(*steps.mean_ms) : "?",
                    figure(*advice.step_ms_low), figure(*advice.step_ms_high));
    }
    out << format("| {} | {} | {} | {} |\n", markdown_code(advice.change), gain.empty() ? "not known" : gain,
                  to_string(advice.basis), markdown_text(advice.note));
  }
  std::string excluded;
  for (const auto* texts : {&finding.look_alikes_excluded, &finding.limits}) {
    for (const std::string& text : *texts) excluded += (excluded.empty() ? "" : "; ") + markdown_text(text);
  }
  if (!excluded.empty()) out << format("\nNot: {}.\n", excluded);
}

void write_losses(const AnalysisDocument& d, std::ostream& out) {
  out << "\n## What was lost\n\n";
  if (d.losses.empty() && d.problems.empty()) out << "Nothing.\n";
  if (!d.losses.empty()) out << "| counter | count | |\n|---|---:|---|\n";
  for (const Loss& loss : d.losses) {
    out << format("| {} | {} | {} |\n", markdown_code(loss.counter), shown_count(loss.count), markdown_text(loss.help));
  }
  if (!d.losses.empty() && !d.problems.empty()) out << '\n';
  for (const std::string& problem : d.problems) out << format("- not readable: {}\n", markdown_text(problem));
}

void write_settings(const RunSettings& settings, std::ostream& out) {
  out << "\n## Settings\n\n| | | |\n|---|---|---|\n";
  for (const auto& [area, entries] : settings) {
    for (const auto& [name, text] : entries) {
      out << format("| {} | {} | {} |\n", area, markdown_text(name), markdown_code(text));
    }
  }
}

Result<void> write(const ReportView& view, std::ostream& out) {
  const AnalysisDocument& d = view.analysis;
  write_head(d, view.run.info(), out);
  write_steps(d.steps, out);
  out << "\n## Findings\n";
  if (d.findings.empty()) out << "\nNone.\n";
  for (const Finding& finding : d.findings) write_finding(finding, d.steps, out);
  if (!d.rules_not_run.empty()) {
    out << format("\n## Not looked at\n\n{} of {} rules ran. Not:\n\n| rule | needs |\n|---|---|\n", d.rules_run,
                  d.rules_run + static_cast<std::int64_t>(d.rules_not_run.size()));
    for (const RuleNotRun& rule : d.rules_not_run) {
      out << format("| {} | {} |\n", markdown_text(rule.rule), markdown_text(fact_words(rule.missing)));
    }
  }
  write_losses(d, out);
  write_settings(read_run_settings(view.run.info(), view.run), out);
  const std::vector<std::string> footer = footer_lines(d);
  if (!footer.empty()) out << '\n';
  std::string text;
  for (const std::string& line : footer) text += line + "\n";
  if (!text.empty()) write_block(text, out);
  return {};
}

}  // namespace

extern constinit const ExporterSpec exporter_md{.name = "md",
                                                .summary = "the answer as a page of Markdown",
                                                .media_type = "text/markdown",
                                                .extension = ".md",
                                                .is_report = true,
                                                .write = write};

}  // namespace hotlap
