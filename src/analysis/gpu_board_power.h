#pragma once
// With which power limit boards start, by the name that the driver gives them.
#include <optional>
#include <string_view>

namespace hotlap {

// Watts. Nothing for a name that is not in the table.
std::optional<double> board_power_w(std::string_view name_untrusted);

}  // namespace hotlap
