// Reading access to a parsed command line.
#include "base/text.h"
#include "cli/command.h"

namespace hotlap {
namespace {

const std::vector<std::string>& entry(const Args& args, std::string_view name) {
  const auto found = args.values.find(name);
  HOTLAP_CHECK(found != args.values.end());  // the command asks for something that its spec lacks
  return found->second;
}

}  // namespace

bool Args::has(std::string_view flag) const { return !entry(*this, flag).empty(); }

std::optional<std::string> Args::text(std::string_view flag) const {
  const std::vector<std::string>& given = entry(*this, flag);
  return given.empty() ? std::nullopt : std::optional(given.back());
}

std::optional<double> Args::number(std::string_view flag) const {
  const std::vector<std::string>& given = entry(*this, flag);
  return given.empty() ? std::nullopt : parse_f64(given.back());
}

std::optional<std::int64_t> Args::integer(std::string_view flag) const {
  const std::vector<std::string>& given = entry(*this, flag);
  return given.empty() ? std::nullopt : parse_i64(given.back());
}

std::optional<std::int64_t> Args::duration_ns(std::string_view flag) const {
  const std::vector<std::string>& given = entry(*this, flag);
  return given.empty() ? std::nullopt : parse_duration_ns(given.back());
}

const std::vector<std::string>& Args::positional(std::string_view name) const { return entry(*this, name); }

}  // namespace hotlap
