#include "view/sql_rules.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "store/home.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRulesMax = 100;
constexpr std::int64_t kPauseNs = 30 * kNsPerS;
constexpr std::int64_t kTimesTaken = 20;
constexpr QueryLimits kLimits{.time_ns = 10 * kNsPerS, .memory_bytes = std::size_t{256} << 20U};

// *.sql of a folder in the order of their names, or the one file.
std::vector<fs::path> files_of(const fs::path& place) {
  std::vector<fs::path> out;
  std::error_code failed;
  if (!fs::is_directory(place, failed)) {
    if (place.extension() == ".sql") out.push_back(place);
    return out;
  }
  fs::directory_iterator entry(place, failed);
  while (!failed && entry != fs::directory_iterator()) {
    if (entry->path().extension() == ".sql") out.push_back(entry->path());
    entry.increment(failed);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// A place that the user named and that holds no rule is a problem: what was built on them would pass in silence.
std::vector<fs::path> all_files(std::vector<std::string>& problems) {
  std::vector<fs::path> out;
  const auto add = [&](const fs::path& place) {
    for (fs::path& file : files_of(place)) out.push_back(std::move(file));
  };
  if (const Result<fs::path> home = hotlap_home(); home.ok()) add(*home / "rules");
  const char* more = std::getenv("HOTLAP_RULES");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  for (const std::string_view place : split(more == nullptr ? "" : more, ':')) {
    if (place.empty()) continue;
    const std::size_t before = out.size();
    add(fs::path(std::string(place)));
    if (out.size() == before) {
      problems.push_back(format("rule files of HOTLAP_RULES: no *.sql at {}", strip_control(to_valid_utf8(place))));
    }
  }
  return out;
}

std::vector<std::string> missing_of(const SqlRule& rule, const FactTable& facts, const std::set<std::string>& metrics) {
  std::vector<std::string> missing;
  for (const std::string& need : rule.needs) {
    if (facts.find(need) == nullptr && !metrics.contains(need)) missing.push_back(need);
  }
  return missing;
}

}  // namespace

SqlRules SqlRules::load() {
  SqlRules out;
  std::set<std::string> ids;
  for (const fs::path& file : all_files(out.problems_)) {
    const std::string name = strip_control(to_valid_utf8(file.filename().native()));
    const Result<std::string> text = read_regular_file(file, kSqlRuleBytesMax);
    Result<SqlRule> rule = text.ok() ? parse_sql_rule(*text, name) : Result<SqlRule>(text.error());
    if (!rule.ok()) {
      out.problems_.push_back(format("rule {}", rule.error().message));
    } else if (!ids.insert(rule->id).second) {
      out.problems_.push_back(format("rule {}: the id {} is there already", name, rule->id));
    } else if (out.rules_.size() >= kRulesMax) {
      out.problems_.push_back(format("rule {}: more than {} rules, it is left out", name, kRulesMax));
      break;
    } else {
      out.rules_.push_back(std::move(*rule));
    }
  }
  return out;
}

void SqlRules::ask(const fs::path& run, std::span<RecordingReader* const> recordings, const FactTable& facts,
                   bool is_final) {
  const std::int64_t begin_ns = system_clock().mono_ns();
  if (rules_.empty() || (!is_final && begin_ns < ask_again_ns_)) return;
  TimeRange range{.from_ns = INT64_MAX, .to_ns = INT64_MIN};
  std::set<std::string> metrics;
  for (RecordingReader* recording : recordings) {
    const Result<TimeRange> extent = recording->extent();
    if (extent.ok() && extent->from_ns <= extent->to_ns) {
      range.from_ns = std::min(range.from_ns, extent->from_ns);
      range.to_ns = std::max(range.to_ns, extent->to_ns);
    }
    for (const StoredSeries& series : recording->series()) metrics.insert(series.metric);
  }
  findings_.clear();
  not_run_.clear();
  query_problems_.clear();
  ran_ = 0;
  if (range.from_ns > range.to_ns) return;
  for (const SqlRule& rule : rules_) {
    if (std::vector<std::string> missing = missing_of(rule, facts, metrics); !missing.empty()) {
      not_run_.push_back({.rule = rule.id, .missing = std::move(missing)});
      continue;
    }
    QueryRequest request{.run_folder = run,
                         .sql = rule.sql,
                         .parameters = {{":from", range.from_ns}, {":to", range.to_ns}},
                         .limits = kLimits};
    SqlRuleRows rows(rule, range.from_ns, range.to_ns);
    const Result<void> asked = run_query(query_words(request, QueryFindings::kOfOwnRules), kLimits, rows);
    if (!asked.ok()) {
      query_problems_.push_back(format("rule {} ({}) did not run: {}", rule.id, rule.file, asked.error().message));
      continue;
    }
    ++ran_;
    if (rows.left_out() > 0) {
      query_problems_.push_back(format("rule {} ({}): {} rows beyond the first {} are left out", rule.id, rule.file,
                                       rows.left_out(), kSqlRuleFindingsMax));
    }
    for (Finding& finding : rows.take()) findings_.push_back(std::move(finding));
  }
  const std::int64_t took_ns = system_clock().mono_ns() - begin_ns;
  ask_again_ns_ = begin_ns + took_ns + std::max(kPauseNs, kTimesTaken * took_ns);
}

void SqlRules::add_to(RulesOutcome& outcome) const {
  double left = 100;
  for (const Finding& finding : outcome.findings) {
    const bool is_of_steps = finding.lost_of == LostOf::kSteps;
    if (finding.explained_by.empty() && is_of_steps) left -= finding.lost_pct.value_or(0);
  }
  for (Finding finding : findings_) {
    if (finding.lost_pct) {
      finding.lost_pct = std::clamp(left, 0.0, *finding.lost_pct);
      left -= *finding.lost_pct;
    }
    // Before the first cause that loses less; the engine's own order stays.
    const auto place = std::find_if(outcome.findings.begin(), outcome.findings.end(), [&](const Finding& other) {
      return !other.explained_by.empty() || other.lost_pct.value_or(0) < finding.lost_pct.value_or(0);
    });
    outcome.findings.insert(place, std::move(finding));
  }
  outcome.not_run.insert(outcome.not_run.end(), not_run_.begin(), not_run_.end());
  outcome.run += ran_;
}

std::vector<std::string> SqlRules::problems() const {
  std::vector<std::string> out = problems_;
  out.insert(out.end(), query_problems_.begin(), query_problems_.end());
  return out;
}

}  // namespace hotlap
