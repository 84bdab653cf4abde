// What the job runs on: versions that its processes told, and whether it can use a GPU.
#include <array>
#include <optional>

#include "analysis/analyzer.h"
#include "base/json_reader.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::array kFields{
    FactField{"torch", "text", "version of PyTorch"},
    FactField{"python", "text", "version of Python"},
    FactField{"gpu_build", "1", "1: this PyTorch can use a GPU; 0: it cannot"},
    FactField{"gpu", "1", "1: the job uses a GPU, or the machine has one and its use is not known; 0: no"},
    FactField{"torch_threads", "{thread}", "threads of PyTorch's own arithmetic"},
};
constexpr std::array kSchemas{FactSchema{"job.software", "versions and devices of the job", kFields}};

class SoftwareAnalyzer final : public Analyzer {
 public:
  explicit SoftwareAnalyzer(const RunDescription& run) : run_(run) {}

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const SoftwareAnalyzer&>(other);
    if (fact().fields.empty()) run_ = from.run_;
  }

  void snapshot(FactTable& out) const override {
    Fact made = fact();
    if (!made.fields.empty()) out.add(std::move(made));
  }

 private:
  Fact fact() const {
    Fact fact{.kind = "job.software"};
    std::optional<bool> uses_gpu;
    for (const auto& [key, text] : run_.recording->attributes) {
      if (key == "gpu.count") {
        if (const auto count = parse_u64(text)) fact.set("gpu", *count > 0 ? 1 : 0);
      } else if (key.starts_with("process.")) {
        read_info(key, text, fact, uses_gpu);
      }
    }
    // What the job does counts more than what the machine has.
    if (uses_gpu) fact.set("gpu", *uses_gpu ? 1 : 0);
    return fact;
  }

  // "process.<label>.torch": an INFO record of the hook. Workers tell the same as the process that started them.
  static void read_info(std::string_view key, const std::string& text, Fact& fact, std::optional<bool>& uses_gpu) {
    const bool is_torch = key.ends_with(".torch");
    const bool is_accelerator = key.ends_with(".accelerator");
    if (!is_torch && !is_accelerator && !key.ends_with(".python")) return;
    const Result<JsonDocument> document = JsonDocument::parse(text);
    if (!document.ok()) return;
    const JsonValue root = document->root();
    if (is_accelerator) {
      // Loader workers say no for themselves: one process that does is enough.
      if (const auto used = root["initialised"].truth()) uses_gpu = uses_gpu.value_or(false) || *used;
      return;
    }
    const auto version = root["version"].text();
    if (!version) return;
    fact.set_text(is_torch ? "torch" : "python", *version);
    if (!is_torch) return;
    fact.set("gpu_build", root["cuda"].text() || root["hip"].text() ? 1 : 0);
    fact.set("torch_threads", root["threads"].number());
  }

  RunDescription run_;
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<SoftwareAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_software{.id = "software",
                                                      .summary = "What the job runs on.",
                                                      .produces = kSchemas,
                                                      .metrics = {},
                                                      .spans = {},
                                                      .open = open};

}  // namespace hotlap
