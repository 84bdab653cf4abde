#include "rules/link_ceiling.h"

#include <algorithm>
#include <array>

#include "rules/fact_number.h"
#include "rules/step_findings.h"
#include "rules/words.h"

namespace hotlap {
namespace {

constexpr double kGuessMin = 0.85;  // of the link: what TCP leaves of it
constexpr double kGuessMax = 1.0;
constexpr double kBothShare = 0.5;
constexpr double kIdleBusyPct = 20;
constexpr double kIdleReadShare = 0.2;

// Ethernet that is sold, by bits per second.
std::optional<double> usual_link(double bytes_per_s) {
  for (const double gbit : {1.0, 2.5, 5.0, 10.0, 25.0, 40.0, 50.0, 100.0, 200.0}) {
    const double link = gbit * 1e9 / 8;
    if (bytes_per_s >= kGuessMin * link && bytes_per_s <= kGuessMax * link) return link;
  }
  return std::nullopt;
}

}  // namespace

std::optional<LinkCeiling> full_link(const FactTable& facts, const Where& where, double link_pct, double flat_pct) {
  const auto told = number_in(facts.find("job.told"), "link_bytes_per_s");
  std::optional<LinkCeiling> best;
  for (const Fact* network : facts.all("ceilings.network")) {
    if (!same_place(network->where, where)) continue;
    for (const bool is_receive : {true, false}) {
      const auto rate = network->number(is_receive ? "receive_p95_bytes_per_s" : "transmit_p95_bytes_per_s");
      const auto other = network->number(is_receive ? "transmit_p95_bytes_per_s" : "receive_p95_bytes_per_s");
      if (!rate) continue;
      LinkCeiling link{.network = network, .rate_bytes_per_s = *rate, .is_receive = is_receive};
      link.is_both = other.value_or(0) >= kBothShare * *rate;
      const bool is_flat =
          network->number(is_receive ? "receive_flat_pct" : "transmit_flat_pct").value_or(0) >= flat_pct;
      if (const auto known = network->number("link_bytes_per_s")) {
        link.link_bytes_per_s = *known;
      } else if (told) {
        link.link_bytes_per_s = *told;
        link.speed = LinkSpeed::kTold;
      } else if (const auto usual = is_flat ? usual_link(*rate) : std::nullopt) {
        link.link_bytes_per_s = *usual;
        link.speed = LinkSpeed::kGuessed;
      } else {
        continue;
      }
      if (100 * *rate < link_pct * link.link_bytes_per_s) continue;
      if (!best || *rate / link.link_bytes_per_s > best->rate_bytes_per_s / best->link_bytes_per_s) best = link;
    }
  }
  return best;
}

std::string link_words(const LinkCeiling& link) {
  const double rate = link.rate_bytes_per_s / 1e6;
  const double most = link.link_bytes_per_s / 1e6;
  const std::string_view verb = link.is_receive ? "receives" : "sends";
  switch (link.speed) {
    case LinkSpeed::kRead: break;
    case LinkSpeed::kTold:
      return format("{} {} {} MB/s, by meta.json its link gives {}", link.network->where.device, verb, figure(rate),
                    figure(most));
    case LinkSpeed::kGuessed:
      return format("{} {} {} MB/s, flat: a link of {} Gbit/s gives {}", link.network->where.device, verb, figure(rate),
                    figure(most * 8 / 1e3), figure(most));
  }
  return format("{} {} {} MB/s, its link gives {}", link.network->where.device, verb, figure(rate), figure(most));
}

bool are_disks_idle(const FactTable& facts, const Where& where, double network_bytes_per_s) {
  return std::ranges::none_of(facts.all("ceilings.disk"), [&](const Fact* disk) {
    return same_place(disk->where, where) &&
           (disk->number("busy_pct").value_or(0) >= kIdleBusyPct ||
            disk->number("read_bytes_per_s").value_or(0) >= kIdleReadShare * network_bytes_per_s);
  });
}

}  // namespace hotlap
