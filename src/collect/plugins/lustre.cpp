// Lustre mounts from the client's statistics (llite), which newer versions show in debugfs, to root only.
#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/format.h"
#include "collect/collector.h"
#include "collect/instances.h"
#include "collect/sample.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

constexpr std::int64_t kPeriodNs = kNsPerS;
constexpr std::int64_t kFindPeriodNs = 30 * kNsPerS;
constexpr std::size_t kMountsMax = 16;
constexpr std::array<std::string_view, 2> kRoots{"/proc/fs/lustre/llite", "/sys/kernel/debug/lustre/llite"};

enum Metric : std::uint16_t { kReadBytes, kReads, kWriteBytes, kWrites, kOpens, kMetadata, kMetricCount };

constexpr MetricDesc count(std::string_view name, std::string_view unit, std::string_view help) {
  return {.name = name, .unit = unit, .kind = MetricKind::kCounter, .help = help, .min_period_ns = kPeriodNs};
}
constexpr std::array kMetrics{
    count("lustre.read.bytes", "By", "Bytes that programs read."),
    count("lustre.reads", "{operation}", "Read calls."),
    count("lustre.write.bytes", "By", "Bytes that programs wrote."),
    count("lustre.writes", "{operation}", "Write calls."),
    count("lustre.opens", "{operation}", "Files opened."),
    count("lustre.metadata_operations", "{operation}",
          "Requests about names and attributes: open, close, stat, lookup and alike."),
};
static_assert(kMetrics.size() == kMetricCount);

using Totals = std::array<std::uint64_t, kMetricCount>;

constexpr std::array<std::string_view, 14> kMetadataNames{"open",  "close",  "getattr", "setattr", "statfs",
                                                          "mknod", "link",   "unlink",  "symlink", "mkdir",
                                                          "rmdir", "rename", "readdir", "lookup"};

// "read_bytes 6 samples [bytes] 4096 1048576 4717568 …", "open 12 samples [usecs] …": least, most and sum follow
// the unit.
Totals read_stats(std::string_view text) {
  Totals totals{};
  for (TextCursor line(text); !line.at_end(); line.skip_line()) {
    const std::string_view name = line.word();
    std::uint64_t samples = 0;
    if (!line.number(samples) || line.word() != "samples") continue;
    const std::string_view unit = line.word();
    std::array<std::uint64_t, 3> figures{};
    const bool has_sum = line.numbers(figures) == figures.size();
    const bool is_read = name == "read_bytes";
    if (is_read || name == "write_bytes") {
      if (unit != "[bytes]" || !has_sum) continue;
      totals[is_read ? kReads : kWrites] = samples;
      totals[is_read ? kReadBytes : kWriteBytes] = figures[2];
      continue;
    }
    if (name == "open") totals[kOpens] = samples;
    if (std::find(kMetadataNames.begin(), kMetadataNames.end(), name) != kMetadataNames.end())
      totals[kMetadata] += samples;
  }
  return totals;
}

struct LustreMount {
  KeptFile stats;
  std::string label;  // empty: not shown now
  SeriesSet<kMetricCount> series;
  bool has_failed = false;  // and this was said
};

class LustreCollector final : public Collector {
 public:
  LustreCollector(const Host& host, std::string_view root) : host_(host), root_(root) {}

  Result<Outcome> sample(const TickInfo& tick, SampleSink& out) override {
    if (find_due_.at(tick.t_ns)) {
      Result<std::vector<std::string>> found = host_.list(root_);
      names_ = found.ok() ? std::move(found).value() : std::vector<std::string>();
    }
    mounts_.begin();
    for (const std::string& name : names_) {
      auto* const slot = mounts_.find_or_add(name);
      if (slot == nullptr) continue;
      LustreMount& mount = slot->entry;
      if (!mount.stats.is_open()) {
        Result<KeptFile> file = KeptFile::open(host_, root_ + "/" + name + "/stats");
        if (!file.ok()) continue;
        mount.stats = std::move(file).value();
      }
      if (mount.label.empty()) {
        // "scratch-ffff8888d1ab0000": the file system, and which of its mounts.
        mount.label = free_label(name.substr(0, name.rfind('-')));
        mount.series.register_at(out, kReadBytes, mount.label);
      }
      const Result<std::string_view> text = mount.stats.read();
      if (!text.ok()) {
        mount.stats = KeptFile{};
        if (!std::exchange(mount.has_failed, true)) mount.series.add_missing(out, missing_reason(text.error()));
        continue;
      }
      mount.has_failed = false;
      const Totals totals = read_stats(*text);
      for (std::size_t m = 0; m < kMetricCount; ++m) out.add(mount.series[m], Value::of(totals[m]));
    }
    mounts_.end(out, kMetricCount, [&](auto& slot) {
      slot.entry.stats = KeptFile{};
      if (slot.entry.series.is_registered() && !std::exchange(slot.entry.has_failed, true))
        slot.entry.series.add_missing(out, MissingReason::kSourceLost);
      slot.entry.label.clear();
    });
    return names_.empty() ? Outcome::kNoData : Outcome::kSampled;
  }

 private:
  // A file system that is mounted more than once keeps its mounts apart: "scratch", "scratch #2".
  std::string free_label(const std::string& wanted) {
    std::string label = wanted;
    const auto is_taken = [&](const auto& slot) { return slot.entry.label == label; };
    for (int n = 2; std::ranges::any_of(mounts_.slots(), is_taken); ++n) label = format("{} #{}", wanted, n);
    return label;
  }

  const Host& host_;
  std::string root_;
  std::vector<std::string> names_;
  InstanceTable<LustreMount> mounts_{kMountsMax};
  Due find_due_{kFindPeriodNs};
};

Result<std::unique_ptr<Collector>> open(const Host& host) {
  for (const std::string_view root : kRoots) {
    const Result<std::vector<std::string>> names = host.list(root);
    if (!names.ok() || names->empty()) continue;
    if (host.exists(std::string(root) + "/" + names->front() + "/stats")) {
      return std::unique_ptr<Collector>(std::make_unique<LustreCollector>(host, root));
    }
  }
  return Error{ErrorCode::kUnsupported, "no Lustre client statistics here"};
}

}  // namespace

extern constinit const CollectorSpec collector_lustre{.name = "lustre",
                                                      .summary = "Bytes and requests of each Lustre file system.",
                                                      .metrics = kMetrics,
                                                      .min_period_ns = kPeriodNs,
                                                      .open = open};

}  // namespace hotlap
