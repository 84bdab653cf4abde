// Ranks wait in a collective for others that do not come: which, by the numbers that the log gives.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr std::array kNeeds{std::string_view{"log.collective"}};
constexpr std::array kParams{
    ParamDesc{.name = "ranks_shown",
              .default_text = "8",
              .min = 1,
              .max = 1024,
              .unit = "{rank}",
              .help = "ranks that are named; of more the number is said"},
};

std::string ranks_words(const std::set<std::int64_t>& ranks, std::size_t shown) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t count = 0;
  for (const std::int64_t rank : ranks) {
    if (count == shown) return text + format(" and {} more", ranks.size() - shown);
    text += format("{}{}", count++ == 0 ? "" : ", ", rank);
  }
  return text;
}

std::set<std::int64_t> ranks_of(const std::string& list) {
  std::set<std::int64_t> ranks;
  for (const std::string_view one : split(list, ',')) {
    if (const auto rank = parse_i64(one)) ranks.insert(*rank);
  }
  return ranks;
}

Finding head(std::string cause) {
  Finding finding;
  finding.cause = std::move(cause);
  finding.loss = "nothing goes on";
  finding.severity = Severity::kCritical;
  finding.certainty = Certainty::kCertain;
  finding.claims = "hang";
  return finding;
}

// --- Horovod ---

void by_stalls(const FactTable& facts, std::size_t shown, FindingSink& out) {
  std::vector<const Fact*> stalls = facts.all("log.collective");
  std::erase_if(stalls, [](const Fact* one) { return one->text("source") != "horovod"; });
  if (stalls.empty()) return;
  std::map<std::int64_t, int> missing;  // by rank, tensors
  std::set<std::int64_t> seen;
  bool is_by_ready = false;
  double messages = 0;
  for (const Fact* stall : stalls) {
    messages += stall->number("count").value_or(1);
    std::set<std::int64_t> absent = ranks_of(stall->text("missing").value_or(""));
    const std::set<std::int64_t> ready = ranks_of(stall->text("ready").value_or(""));
    const auto world = stall->number("world_size");
    if (absent.empty() && !ready.empty() && world) {
      for (std::int64_t rank = 0; rank < static_cast<std::int64_t>(*world); ++rank) {
        if (!ready.contains(rank)) absent.insert(rank);
      }
    }
    is_by_ready |= absent.empty() && !ready.empty();
    for (const std::int64_t rank : absent) ++missing[rank];
    seen.insert(ready.begin(), ready.end());
  }
  const std::string tensor = stalls.front()->text("tensor").value_or("?");
  if (missing.empty()) {
    if (is_by_ready)
      out.cannot_tell(format("{} wait in a collective; which rank is missing can't be told without the number of ranks",
                             ranks_words(seen, shown)));
    return;
  }
  std::set<std::int64_t> culprits;
  for (const auto& [rank, count] : missing) culprits.insert(rank);
  Finding finding = head(
      format("{} {} not come to a collective", ranks_words(culprits, shown), culprits.size() == 1 ? "does" : "do"));
  if (culprits.size() == 1) finding.where.rank = static_cast<std::int32_t>(*culprits.begin());
  finding.why.push_back(format("'{}' waits for {}", tensor, ranks_words(culprits, shown)));
  if (!seen.empty()) finding.why.push_back(format("{} are there", ranks_words(seen, shown)));
  finding.why.push_back(format("{} of {}", counted(messages, "such message", "such messages"),
                               counted(static_cast<double>(stalls.size()), "tensor", "tensors")));
  finding.evidence["missing_ranks"] = static_cast<double>(culprits.size());
  finding.advice.push_back({.change = format("look at what {} {} doing (py-spy dump, its log): an uneven number of "
                                             "batches, validation or saving on one rank only, or it died",
                                             ranks_words(culprits, shown), culprits.size() == 1 ? "is" : "are"),
                            .note = "every rank must come to every collective"});
  finding.look_alikes_excluded.emplace_back("a slow network (the others are there and wait)");
  out.add(std::move(finding));
}

// --- NCCL's watchdog ---

// How far a rank came in its process group.
double progress(const Fact& one) {
  if (const auto enqueued = one.number("enqueued")) return *enqueued;
  return one.number("sequence").value_or(-1);
}

std::string what_words(const Fact& one) {
  std::string text = one.text("operation").value_or("a collective");
  if (const auto elements = one.number("elements_in"))
    text += format(" of {} elements", shown_count(static_cast<std::uint64_t>(*elements)));
  return text;
}

// Two ranks at the same number that do different things can never meet.
bool report_mismatch(const std::vector<const Fact*>& group, const std::string& name, FindingSink& out) {
  std::map<double, std::vector<const Fact*>> by_sequence;
  for (const Fact* one : group) {
    if (const auto sequence = one->number("sequence"); sequence && one->text("operation"))
      by_sequence[*sequence].push_back(one);
  }
  for (const auto& [sequence, ones] : by_sequence) {
    const Fact& first = *ones.front();
    const auto other = std::ranges::find_if(ones, [&](const Fact* one) {
      const bool is_other_operation = one->text("operation") != first.text("operation");
      const bool counts = first.text("operation") == "ALLREDUCE" || first.text("operation") == "BROADCAST" ||
                          first.text("operation") == "REDUCE";
      return is_other_operation || (counts && one->number("elements_in") != first.number("elements_in"));
    });
    if (other == ones.end()) continue;
    Finding finding = head("Ranks call different collectives at the same place");
    finding.claims = "desync";
    finding.distance = -1;
    finding.why.push_back(format("number {:.0f}{}: rank {} {}, rank {} {}", sequence, name,
                                 first.where.rank.value_or(-1), what_words(first), (*other)->where.rank.value_or(-1),
                                 what_words(**other)));
    finding.evidence["sequence"] = sequence;
    finding.advice.push_back({.change = "find the branch that one rank takes and the others don't: code before it that "
                                        "depends on the rank, on the data (an empty or longer batch), or on time",
                              .note = "TORCH_DISTRIBUTED_DEBUG=DETAIL checks each call"});
    finding.look_alikes_excluded.emplace_back("a rank that is only slow (it would do the same)");
    out.add(std::move(finding));
    return true;
  }
  return false;
}

void report_laggard(const std::vector<const Fact*>& group, const std::string& name, std::size_t shown,
                    FindingSink& out) {
  double least = progress(*group.front());
  double most = least;
  for (const Fact* one : group) {
    least = std::min(least, progress(*one));
    most = std::max(most, progress(*one));
  }
  const Fact* longest =
      *std::ranges::max_element(group, {}, [](const Fact* one) { return one->number("waited_s").value_or(0); });
  const auto waited = longest->number("waited_s");
  const auto timeout = longest->number("timeout_s");
  if (least == most || group.size() == 1) {
    const bool is_alone = group.size() == 1;
    Finding finding = head(is_alone ? format("Rank {} waits in a collective", group.front()->where.rank.value_or(-1))
                                    : "All ranks seen wait in the same collective");
    finding.certainty = Certainty::kLikely;
    finding.why.push_back(format("number {:.0f}{}: {}", group.front()->number("sequence").value_or(least), name,
                                 what_words(*group.front())));
    if (waited) finding.why.push_back(format("waited {} s", figure(*waited)));
    finding.limits.emplace_back(is_alone ? "who is missing: only one rank's message is there"
                                         : "who is missing: a rank whose log is not here, or the network");
    finding.advice.push_back({.change = "bring the logs of all ranks together: hotlap analyze LOG…", .note = {}});
    out.add(std::move(finding));
    return;
  }
  std::set<std::int64_t> culprits;
  for (const Fact* one : group) {
    if (progress(*one) == least && one->where.rank) culprits.insert(*one->where.rank);
  }
  Finding finding = head(culprits.empty() ? std::string("A rank is behind, and the others wait for it")
                                          : format("{} is behind, and the others wait", ranks_words(culprits, shown)));
  if (culprits.size() == 1) finding.where.rank = static_cast<std::int32_t>(*culprits.begin());
  finding.why.push_back(format("it came to number {:.0f}{}, others to {:.0f}", least, name, most));
  if (waited) {
    finding.why.push_back(format("the others waited {} s", figure(*waited)) +
                          (timeout ? format(", the limit is {} s", figure(*timeout)) : std::string()));
  }
  finding.evidence["least_sequence"] = least;
  finding.evidence["most_sequence"] = most;
  finding.advice.push_back(
      {.change =
           format("look at what {} did: its stack (py-spy dump), its data, its GPU", ranks_words(culprits, shown)),
       .note = "a shorter timeout tells sooner: init_process_group(timeout=timedelta(minutes=5))"});
  finding.look_alikes_excluded.emplace_back("the ranks that report the timeout (they wait)");
  out.add(std::move(finding));
}

void by_watchdog(const FactTable& facts, std::size_t shown, FindingSink& out) {
  std::map<std::string, std::vector<const Fact*>> groups;
  for (const Fact* one : facts.all("log.collective")) {
    if (one->text("source") == "nccl") groups[one->text("group").value_or("")].push_back(one);
  }
  // Numbers of different groups mean nothing to each other; the one with the most ranks speaks.
  const std::vector<const Fact*>* most = nullptr;
  std::string name;
  for (const auto& [group, ones] : groups) {
    if (most != nullptr && ones.size() <= most->size()) continue;
    most = &ones;
    name = group.empty() ? std::string() : format(" of group {}", group);
  }
  if (most == nullptr) return;
  if (!report_mismatch(*most, name, out)) report_laggard(*most, name, shown, out);
}

Result<void> evaluate(const FactTable& facts, const Params& params, FindingSink& out) {
  const auto shown = static_cast<std::size_t>(params.number("ranks_shown"));
  by_stalls(facts, shown, out);
  by_watchdog(facts, shown, out);
  return {};
}

}  // namespace

extern constinit const RuleSpec rule_collective_hang{
    .id = "CollectiveHang",
    .title = "Ranks wait in a collective for others that do not come",
    .why =
        "Reads the warnings of Horovod (ranks that are ready, or missing) and of NCCL's watchdog: within one process "
        "group the rank with the lowest number is the one that the others wait for; two that do different things at "
        "the same number never meet.",
    .advice = "Where to look: the rank that is behind.",
    .needs = kNeeds,
    .params = kParams,
    .evaluate = evaluate};

}  // namespace hotlap
