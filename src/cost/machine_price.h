#pragma once
// What an hour of a run costs, and who says so. Thread-safe: nothing here has state.
#include <map>
#include <optional>
#include <string>

#include "model/run.h"

namespace hotlap {

// Of one machine: as given when the run was started, else as an imported meta.json says (its price, or the type of the
// machine by the catalogue); nothing when neither is known or what is said cannot be one.
std::optional<Price> machine_price(const RunInfo& run, const std::map<std::string, std::string>& attributes_untrusted);

// Of `nodes` machines together; the source says of how many.
Price price_of_nodes(const Price& machine, std::int64_t nodes);
std::optional<Price> price_of_nodes(const std::optional<Price>& machine, std::int64_t nodes);

}  // namespace hotlap
