#include "record/transfer.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::int64_t kSectorBytes = 512;  // unit of /proc/diskstats, whatever the device

// Adds to a sum that is -1 until something is known of it.
void add_known(std::int64_t& sum, std::int64_t more) { sum = std::max<std::int64_t>(sum, 0) + more; }

struct Interface {
  std::string name;
  std::int64_t received;
  std::int64_t sent;
  bool is_real;
};

std::vector<Interface> read_interfaces(const Host& host) {
  std::vector<Interface> all;
  const std::string text = host.read_text("/proc/net/dev").value_or(std::string());
  std::string_view rest(text);
  std::string_view line;
  while (next_line(rest, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string name(trim(line.substr(0, colon)));
    std::string_view numbers = line.substr(colon + 1);
    const auto received = parse_i64(next_word(numbers));
    for (int skipped = 0; skipped < 7; ++skipped) next_word(numbers);
    const auto sent = parse_i64(next_word(numbers));
    if (!received || !sent || name == "lo") continue;
    const bool is_real = host.exists(format("/sys/class/net/{}/device", name));
    all.push_back({std::move(name), *received, *sent, is_real});
  }
  return all;
}

void sum_interfaces(const Host& host, MovedBytes& moved) {
  const std::vector<Interface> all = read_interfaces(host);
  // Virtual interfaces repeat what the real one carries; in a container there is no other.
  const bool has_real = std::any_of(all.begin(), all.end(), [](const Interface& one) { return one.is_real; });
  for (const Interface& one : all) {
    if (has_real && !one.is_real) continue;
    add_known(moved.received, one.received);
    add_known(moved.sent, one.sent);
    if (!one.is_real) continue;  // the speed that a virtual one tells is made up
    const std::string speed = host.read_text(format("/sys/class/net/{}/speed", one.name)).value_or(std::string());
    const std::int64_t megabits = parse_i64(trim(speed)).value_or(-1);
    if (megabits > 0) moved.link_bits_per_s = std::max(moved.link_bits_per_s, megabits * 1'000'000);
  }
}

void read_disks(const Host& host, MovedBytes& moved) {
  const Result<std::string> text = host.read_text("/proc/diskstats");
  if (!text.ok()) return;
  std::string_view rest(*text);
  std::string_view line;
  while (next_line(rest, line)) {
    next_word(line);
    next_word(line);
    const std::string name(next_word(line));
    // Whole devices only, not their partitions; and not what lies on top of them.
    if (!host.exists(format("/sys/block/{}/device", name))) continue;
    for (int skipped = 0; skipped < 6; ++skipped) next_word(line);
    if (const auto sectors = parse_i64(next_word(line))) add_known(moved.disk_written, *sectors * kSectorBytes);
  }
}

}  // namespace

MovedBytes moved_bytes(const Host& host) {
  MovedBytes moved;
  sum_interfaces(host, moved);
  read_disks(host, moved);
  return moved;
}

TransferSummary summarise_transfer(const MovedBytes& before, const MovedBytes& after, std::int64_t duration_ns,
                                   bool is_download) {
  TransferSummary summary;
  const std::int64_t from = is_download ? before.received : before.sent;
  const std::int64_t to = is_download ? after.received : after.sent;
  if (from >= 0 && to >= from) summary.bytes = to - from;
  const double seconds = std::max(1e-9, static_cast<double>(duration_ns) * 1e-9);
  summary.text = summary.bytes < 0
                     ? format("unknown bytes in {}", format_duration(duration_ns))
                     : format("{} in {} ({}/s", format_bytes(static_cast<double>(summary.bytes)),
                              format_duration(duration_ns), format_bytes(static_cast<double>(summary.bytes) / seconds));
  if (summary.bytes < 0) return summary;
  if (after.link_bits_per_s > 0) {
    const double share = static_cast<double>(summary.bytes) * 8 / seconds / static_cast<double>(after.link_bits_per_s);
    summary.text += format(", {:.0f} % of the link", 100 * share);
  } else {
    summary.text += ", speed of the link unknown";
  }
  summary.text += ")";
  if (before.disk_written >= 0 && after.disk_written >= before.disk_written) {
    summary.text +=
        format("; {} written to disk", format_bytes(static_cast<double>(after.disk_written - before.disk_written)));
  }
  return summary;
}

}  // namespace hotlap
