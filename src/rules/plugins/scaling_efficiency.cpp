// More GPUs give little more throughput, or less: by a table of runs.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "rules/gpu_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"scaling.point"}};
constexpr std::array kParams{
    percent_param("efficiency_pct", "85",
                  "throughput per GPU, of that of the smallest run, below which the rule speaks"),
};
constexpr double kWorthPct = 50;  // of what is added, that must come out for it to be worth its price

// What a table counts, in words: "n_gpus" are GPUs.
struct Counted {
  std::string_view title;
  std::string_view one;
  std::string_view many;
};
constexpr std::array kCounted{Counted{"workers", "worker", "workers"},      Counted{"nodes", "node", "nodes"},
                              Counted{"n_nodes", "node", "nodes"},          Counted{"num_nodes", "node", "nodes"},
                              Counted{"world_size", "rank", "ranks"},       Counted{"ranks", "rank", "ranks"},
                              Counted{"processes", "process", "processes"}, Counted{"np", "process", "processes"}};

const Counted& counted_as(const Fact& point) {
  static constexpr Counted kGpus{"gpus", "GPU", "GPUs"};
  const std::string title = point.text("of").value_or("gpus");
  const auto* const found = std::ranges::find(kCounted, std::string_view(title), &Counted::title);
  return found == kCounted.end() ? kGpus : *found;
}

std::string count_words(const Fact& point) {
  const Counted& words = counted_as(point);
  return counted(point.number("count").value_or(0), words.one, words.many);
}

std::string rate_words(const Fact& point) {
  const std::string figure_of = point.text("figure").value_or("");
  const bool is_ms = figure_of.find("ms") != std::string::npos;
  if (point.number("is_of_whole_work") == 1) {
    return format("{} {}{}", figure(point.number("rate").value_or(0)),
                  figure_of.find("min") != std::string::npos ? "min" : "s",
                  figure_of.find("epoch") != std::string::npos ? " an epoch" : "");
  }
  return point.number("is_time") == 1
             ? format("{} {} a step", figure(point.number("rate").value_or(0)), is_ms ? "ms" : "s")
             : format("{:.0f}/s", point.number("rate").value_or(0));
}

// Tables of synthetic and of real data side by side: what only the real one loses is the input's.
std::string input_words(const std::map<std::string, std::vector<const Fact*>>& tables) {
  const Fact* synthetic = nullptr;
  const Fact* real = nullptr;
  for (const auto& [name, points] : tables) {
    if (name.find("synth") != std::string::npos) synthetic = points.back();
    if (name.find("real") != std::string::npos) real = points.back();
  }
  if (synthetic == nullptr || real == nullptr) return {};
  const double without = synthetic->number("efficiency_pct").value_or(0);
  const double with = real->number("efficiency_pct").value_or(0);
  if (without - with < 10) return {};
  return format("with synthetic data {} %, with real data {} %: the difference is input, not communication",
                figure(without), figure(with));
}

void judge(const FactTable& facts, const std::vector<const Fact*>& points, const std::string& by_input,
           FindingSink& out) {
  const Fact& last = *points.back();
  const Fact& base = *points.front();
  const auto best =
      std::ranges::max_element(points, {}, [](const Fact* one) { return one->number("gain").value_or(0); });
  const double efficiency = last.number("efficiency_pct").value_or(0);
  const double lost = 100 - efficiency;
  const bool is_negative = last.number("gain").value_or(0) < (*best)->number("gain").value_or(0) && *best != &last;
  Finding finding;
  finding.cause = is_negative ? format("{} are slower than {}", count_words(last), count_words(**best))
                              : format("{} scale at {} %", count_words(last), figure(efficiency));
  finding.loss = format("{} % of the {} paid for nothing", figure(lost), counted_as(last).many);
  finding.severity = is_negative || efficiency < 60 ? Severity::kCritical : Severity::kWarning;
  finding.certainty = Certainty::kCertain;
  finding.claims = "scaling";
  finding.evidence["efficiency_pct"] = efficiency;
  finding.evidence["gain"] = last.number("gain").value_or(0);
  std::string row;
  for (const Fact* point : points) {
    row += format("{}{}: {} ({} %)", row.empty() ? "" : ", ", count_words(*point), rate_words(*point),
                  figure(point->number("efficiency_pct").value_or(0)));
  }
  finding.why.push_back(std::move(row));
  if (!by_input.empty()) finding.why.push_back(by_input);
  if (const Fact* topology = facts.find("machine.topology")) {
    const double links = topology->number("nvlink_pairs").value_or(0);
    const std::string worst = topology->text("worst").value_or("");
    if (links < 1) {
      finding.why.push_back(format("no two GPUs are connected by NVLink{}: they share PCIe",
                                   worst.empty() ? "" : format(" (up to {})", worst)));
    }
  }
  // The largest size whose last doubling still gave half of what it added.
  const Fact* worth = &base;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double added = points[i]->number("count").value_or(1) / worth->number("count").value_or(1) - 1;
    const double gained = points[i]->number("gain").value_or(0) / worth->number("gain").value_or(1) - 1;
    if (added > 0 && 100 * gained / added >= kWorthPct) worth = points[i];
  }
  // Slower than a smaller size is worth nothing at all; which of the smaller ones depends on the price of time.
  const auto advise = [&](const Fact& size, std::string_view note) {
    const double share = last.number("gain").value_or(0) / size.number("gain").value_or(1);
    finding.advice.push_back(
        {.change = format("use {}", count_words(size)),
         .basis = Basis::kArithmetic,
         .note = std::string(note),
         .gain = format("{} % of the price for {} % of the throughput",
                        figure(100 * size.number("count").value_or(1) / last.number("count").value_or(1)),
                        figure(100 / std::max(share, 0.01)))});
  };
  if (is_negative) advise(**best, "the fastest");
  if (worth != &last && !(is_negative && worth == *best)) advise(*worth, is_negative ? "the most for its price" : "");
  finding.advice.push_back({.change = by_input.empty()
                                          ? "look at communication: NCCL's network (NCCL_DEBUG=INFO), overlap with "
                                            "backward, larger batches, gradient compression or accumulation"
                                          : "look at the input: a copy on local disks, more loader workers and cores",
                            .note = "a run of each size tells which: data wait against communication"});
  if (by_input.empty()) finding.limits.emplace_back("what the time goes to: the table has throughput only");
  out.add(std::move(finding));
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  std::map<std::string, std::vector<const Fact*>> tables;
  for (const Fact* point : facts.all("scaling.point")) tables[point->text("figure").value_or("")].push_back(point);
  const std::vector<const Fact*>* worst = nullptr;
  for (auto& [figure, points] : tables) {
    std::ranges::stable_sort(points, {}, [](const Fact* one) { return one->number("count").value_or(0); });
    if (points.size() < 2) continue;
    const double efficiency = points.back()->number("efficiency_pct").value_or(100);
    if (efficiency >= params.number("efficiency_pct")) continue;
    if (worst == nullptr || efficiency < worst->back()->number("efficiency_pct").value_or(100)) worst = &points;
  }
  if (worst != nullptr) judge(facts, *worst, input_words(tables), out);
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_scaling_efficiency{
    .id = "ScalingEfficiency",
    .title = "More GPUs give little more throughput",
    .why =
        "Compares the throughput per GPU of the largest run of a table with that of the smallest. Certain: it is "
        "arithmetic. Columns of synthetic and real data tell input from communication.",
    .advice = "The size that is worth its price, and where to look.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
