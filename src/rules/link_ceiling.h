#pragma once
// A network interface that gives no more: by its own link speed, by the one that meta.json tells, or flat just below a
// usual one. Thread-safe: nothing here has state.
#include <optional>
#include <string>

#include "rules/rule.h"

namespace hotlap {

enum class LinkSpeed : std::uint8_t { kRead, kTold, kGuessed };

struct LinkCeiling {
  const Fact* network = nullptr;  // ceilings.network
  double rate_bytes_per_s = 0;    // 95th percentile, of the direction that is full
  double link_bytes_per_s = 0;
  LinkSpeed speed = LinkSpeed::kRead;
  bool is_receive = true;
  bool is_both = false;  // the other direction has half of it or more: ranks exchange data
};

// Of the interfaces at `where` the one that is fullest, from `link_pct` of its speed on. Guessed where its speed is not
// known: flat for `flat_pct` of the time at 85 to 100 % of a usual speed.
std::optional<LinkCeiling> full_link(const FactTable& facts, const Where& where, double link_pct, double flat_pct);

// "eth0 receives 117 MB/s, its link gives 125".
std::string link_words(const LinkCeiling& link);

// No disk of the machine gives what the network does: what is read comes from elsewhere.
bool are_disks_idle(const FactTable& facts, const Where& where, double network_bytes_per_s);

}  // namespace hotlap
