// What the user told of the job in a meta.json beside the recordings: settings that no series shows.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "analysis/analyzer.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"workers", "{process}", "loader workers of a training process"},
    FactField{"batch_size", "{sample}", ""},
    FactField{"epoch_steps", "{step}", "steps of an epoch"},
    FactField{"world_size", "1", "ranks of the job"},
    FactField{"omp_num_threads", "{thread}", "OMP_NUM_THREADS"},
    FactField{"threads", "{thread}", "of all processes of the job"},
    FactField{"cores", "{core}", "of the machine"},
    FactField{"link_bytes_per_s", "By/s", "speed of the network's link"},
    FactField{"data", "text", "where the data lies"},
    FactField{"mount", "text", "its file system"},
    FactField{"framework", "text", ""},
};
constexpr std::array kSchemas{FactSchema{"job.told", "what meta.json tells of the job", kFields}};

struct Name {
  std::string_view key;
  std::string_view field;
  double factor = 1;
};
constexpr double kBytesPerGbit = 1e9 / 8;
constexpr double kBytesPerMbit = 1e6 / 8;
constexpr std::array kNumbers{Name{"num_workers", "workers"},
                              Name{"workers", "workers"},
                              Name{"loader_workers", "workers"},
                              Name{"dataloader_num_workers", "workers"},
                              Name{"dataloader.num_workers", "workers"},
                              Name{"batch_size", "batch_size"},
                              Name{"steps_per_epoch", "epoch_steps"},
                              Name{"epoch_steps", "epoch_steps"},
                              Name{"world_size", "world_size"},
                              Name{"ranks", "world_size"},
                              Name{"omp_num_threads", "omp_num_threads"},
                              Name{"OMP_NUM_THREADS", "omp_num_threads"},
                              Name{"environment.OMP_NUM_THREADS", "omp_num_threads"},
                              Name{"env.OMP_NUM_THREADS", "omp_num_threads"},
                              Name{"threads", "threads"},
                              Name{"num_threads", "threads"},
                              Name{"cores", "cores"},
                              Name{"cpus", "cores"},
                              Name{"cpu_count", "cores"},
                              Name{"vcpus", "cores"},
                              Name{"vcpu", "cores"},
                              Name{"nic_gbit", "link_bytes_per_s", kBytesPerGbit},
                              Name{"nic_gbps", "link_bytes_per_s", kBytesPerGbit},
                              Name{"nic_gbit_s", "link_bytes_per_s", kBytesPerGbit},
                              Name{"link_gbit", "link_bytes_per_s", kBytesPerGbit},
                              Name{"link_gbps", "link_bytes_per_s", kBytesPerGbit},
                              Name{"network_gbps", "link_bytes_per_s", kBytesPerGbit},
                              Name{"network_gbit", "link_bytes_per_s", kBytesPerGbit},
                              Name{"nic_mbit", "link_bytes_per_s", kBytesPerMbit},
                              Name{"link_mbps", "link_bytes_per_s", kBytesPerMbit}};
constexpr std::array kTexts{Name{"dataset", "data"},     Name{"data", "data"},         Name{"dataset_path", "data"},
                            Name{"data_path", "data"},   Name{"data_dir", "data"},     Name{"dataset_uri", "data"},
                            Name{"data_source", "data"}, Name{"s3_uri", "data"},       Name{"data_mount", "mount"},
                            Name{"mount_type", "mount"}, Name{"data_fstype", "mount"}, Name{"filesystem", "mount"},
                            Name{"storage", "mount"}};

class ToldAnalyzer final : public Analyzer {
 public:
  explicit ToldAnalyzer(const RunDescription& run) : run_(run) {}

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const ToldAnalyzer&>(other);
    Fact theirs = from.fact();
    merged_.fields.merge(theirs.fields);
  }

  void snapshot(FactTable& out) const override {
    Fact all = merged_;
    Fact own = fact();
    all.fields.merge(own.fields);
    all.kind = "job.told";
    if (!all.fields.empty()) out.add(std::move(all));
  }

 private:
  Fact fact() const {
    Fact fact{.kind = "job.told"};
    if (run_.recording == nullptr) return fact;
    const auto& attributes = run_.recording->attributes;
    const auto text_of = [&](std::string_view key) -> const std::string* {
      const auto found = attributes.find("meta." + std::string(key));
      return found == attributes.end() ? nullptr : &found->second;
    };
    for (const Name& name : kNumbers) {
      const std::string* text = text_of(name.key);
      const auto number = text == nullptr ? std::nullopt : parse_f64(*text);
      if (number && *number >= 0 && !fact.number(name.field)) fact.set(name.field, *number * name.factor);
    }
    for (const Name& name : kTexts) {
      const std::string* text = text_of(name.key);
      if (text != nullptr && !text->empty() && !fact.text(name.field)) fact.set_text(name.field, *text);
    }
    if (const auto framework = attributes.find("framework"); framework != attributes.end()) {
      fact.set_text("framework", framework->second);
    }
    return fact;
  }

  const RunDescription& run_;
  Fact merged_{.kind = "job.told"};
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ToldAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_told{.id = "told",
                                                  .summary = "What meta.json tells of the job.",
                                                  .produces = kSchemas,
                                                  .metrics = {},
                                                  .spans = {},
                                                  .open = open};

}  // namespace hotlap
