// How large the model is, in which precision it computes, and from both, and the tokens that go through, an estimate of
// the operations per second and of the share of what the GPU could do.
#include <algorithm>
#include <array>
#include <map>

#include "analysis/analyzer.h"
#include "analysis/gpu_peaks.h"
#include "analysis/step_table.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json_reader.h"

namespace hotlap {
namespace {

constexpr std::array kModelFields{
    FactField{"classes", "text", "the models that the program calls"},
    FactField{"parameters", "{parameter}", "of all of them, each once"},
    FactField{"trainable", "{parameter}", "those that are trained"},
    FactField{"lookup_parameters", "{parameter}", "those in tables that are only looked up, not multiplied with"},
    FactField{"bytes", "By", "of the parameters"},
    FactField{"dtype", "text", "of most parameters"},
    FactField{"devices", "{device}", "on which they lie"},
    FactField{"attention", "1", "1: has attention layers"},
    FactField{"channels_last", "1", "1: kernels of convolutions lie in memory with their channels last"},
    FactField{"reason", "text", "why the size is not known"},
};
constexpr std::array kSettingsFields{
    FactField{"autocast", "1", "1: forward ran under autocast"},
    FactField{"autocast_dtype", "text", ""},
    FactField{"tf32_matmul", "1", "1: float32 products of matrices are computed as TF32 where the GPU can"},
    FactField{"tf32_cudnn", "1", "1: float32 convolutions are"},
    FactField{"cudnn_benchmark", "1", "1: cuDNN tries its algorithms out"},
    FactField{"deterministic", "1", "1: only deterministic algorithms"},
    FactField{"compile_mode", "text", "of torch.compile(); absent: it was not called"},
    FactField{"compile_backend", "text", ""},
};
constexpr std::array kEfficiencyFields{
    FactField{"flops_per_token", "{operation}", "model operations, forward and backward: an estimate"},
    FactField{"tflops", "T{operation}/s", "model operations per second of one process: an estimate"},
    FactField{"peak_tflops", "T{operation}/s", "what its GPUs could do in that precision at most"},
    FactField{"mfu_pct", "%", "model FLOPs utilization: the one by the other"},
    FactField{"precision", "text", "of most products: fp32, tf32, bf16 or fp16"},
    FactField{"gpu", "text", "as the framework names it"},
    FactField{"basis", "text", "how it was estimated"},
    FactField{"reason", "text", "why it, or the share, is not known"},
};
constexpr std::array kSchemas{
    FactSchema{"job.model", "what is trained", kModelFields},
    FactSchema{"job.settings", "settings that decide how fast it computes", kSettingsFields},
    FactSchema{"compute.efficiency", "operations per second of one training process", kEfficiencyFields},
};
constexpr std::string_view kBasis =
    "estimate: 6 operations per parameter and token (4 where a parameter is not trained), without the products of "
    "attention itself and without recomputation";

// A member that may be null.
void set_truth(Fact& fact, std::string_view field, const JsonValue& value) {
  if (const auto truth = value.truth()) fact.set(field, *truth ? 1 : 0);
}
void set_words(Fact& fact, std::string_view field, const JsonValue& value) {
  if (const auto text = value.text()) fact.set_text(field, *text);
}

// What one process says of itself.
struct Said {
  Fact model{.kind = "job.model"};
  Fact settings{.kind = "job.settings"};
  std::string gpu;
  bool has_experts = false;
};

class ModelAnalyzer final : public Analyzer {
 public:
  explicit ModelAnalyzer(const RunDescription& run) : run_(run), table_(run.steps) {}

  void merge(const Analyzer& other) override {
    const auto& from = static_cast<const ModelAnalyzer&>(other);
    for (const StepTable::Entry& entry : from.table_->entries()) {
      if (auto said = from.said_by(entry.process)) merged_.insert_or_assign(entry.process, std::move(*said));
    }
  }

  void snapshot(FactTable& out) const override {
    bool is_first = true;
    for (const StepTable::Entry& entry : table_->entries()) {
      auto said = said_by(entry.process);
      if (!said) continue;
      Fact efficiency = efficiency_of(*said, entry);
      if (std::exchange(is_first, false)) {  // the ranks of a job train the same
        if (!said->model.fields.empty()) out.add(std::move(said->model));
        if (!said->settings.fields.empty()) out.add(std::move(said->settings));
      }
      if (!efficiency.fields.empty()) out.add(std::move(efficiency));
    }
  }

 private:
  std::optional<Said> said_by(const std::string& process) const {
    Said said;
    bool has_any = false;
    const auto with = [&](std::string_view key, auto function) {
      const auto text = run_.recording->attributes.find(format("process.{}.{}", process, key));
      if (text == run_.recording->attributes.end()) return;
      const Result<JsonDocument> document = JsonDocument::parse(text->second);
      if (!document.ok() || !document->root().is_object()) return;
      has_any = true;
      function(document->root());
    };
    with("model", [&](const JsonValue& root) { read_model(root, said); });
    with("settings", [&](const JsonValue& root) { read_settings(root, said.settings); });
    with("accelerator", [&](const JsonValue& root) {
      const std::vector<JsonValue> names = root["names"].items();
      const auto current = root["current"].integer();
      if (!current || *current < 0 || static_cast<std::size_t>(*current) >= names.size()) return;
      said.gpu = names[static_cast<std::size_t>(*current)].text().value_or("");
    });
    if (has_any) return said;
    const auto merged = merged_.find(process);
    return merged == merged_.end() ? std::nullopt : std::optional(merged->second);
  }

  static void read_model(const JsonValue& root, Said& said) {
    Fact& fact = said.model;
    std::string classes;
    for (const JsonValue& one : root["classes"].items()) {
      if (const auto name = one.text()) classes += (classes.empty() ? "" : ", ") + *name;
    }
    if (!classes.empty()) fact.set_text("classes", std::move(classes));
    for (const char* field : {"parameters", "trainable", "lookup_parameters", "bytes"}) {
      const auto number = root[field].number();
      if (number && *number >= 0) fact.set(field, *number);
    }
    double most = 0;
    const JsonValue types = root["dtypes"];
    for (const std::string& name : types.keys()) {
      const double count = types[name].number().value_or(0);
      if (count > most) fact.set_text("dtype", name);
      most = std::max(most, count);
    }
    if (root["devices"].is_array()) fact.set("devices", static_cast<double>(root["devices"].items().size()));
    set_truth(fact, "attention", root["attention"]);
    set_truth(fact, "channels_last", root["channels_last"]);
    set_words(fact, "reason", root["reason"]);
    said.has_experts = root["experts"].truth().value_or(false);
  }

  static void read_settings(const JsonValue& root, Fact& fact) {
    for (const char* field : {"autocast", "tf32_matmul", "tf32_cudnn", "cudnn_benchmark", "deterministic"}) {
      set_truth(fact, field, root[field]);
    }
    set_words(fact, "autocast_dtype", root["autocast_dtype"]);
    const JsonValue compile = root["compile"];
    if (!compile.is_object()) return;
    fact.set_text("compile_mode", compile["mode"].text().value_or("default"));
    set_words(fact, "compile_backend", compile["backend"]);
  }

  static std::optional<Precision> precision_of(const Said& said) {
    const bool is_autocast = said.settings.number("autocast") == 1;
    const auto type = is_autocast ? said.settings.text("autocast_dtype") : said.model.text("dtype");
    if (!type) return std::nullopt;
    if (*type == "bfloat16") return Precision::kBf16;
    if (*type == "float16") return Precision::kFp16;
    if (*type != "float32") return std::nullopt;
    const auto tf32 = said.settings.number("tf32_matmul");
    if (!tf32) return std::nullopt;
    return *tf32 == 1 ? Precision::kTf32 : Precision::kFp32;
  }

  // Empty where nothing tells what goes through the model: then there is nothing to explain either.
  static Fact efficiency_of(const Said& said, const StepTable::Entry& entry) {
    Fact fact{.kind = "compute.efficiency", .where = entry.where};
    const StepSums sums = entry.steps->steady().sums;
    if (sums.token_ns <= 0 || sums.tokens <= 0 || said.model.fields.empty()) return fact;
    const auto parameters = said.model.number("parameters");
    const auto trainable = said.model.number("trainable");
    const auto lookups = said.model.number("lookup_parameters");
    if (!parameters || !trainable || !lookups) {
      return fact.set_text("reason", said.model.text("reason").value_or("the size of the model is not known"));
    }
    if (said.model.number("attention") != 1) {
      return fact.set_text("reason", "no attention layers: 6 operations per parameter and token may not hold");
    }
    if (said.has_experts) return fact.set_text("reason", "a mixture of experts: which parameters work is not known");
    const double multiplied = std::max(*parameters - *lookups, 0.0);
    const double per_token = 4 * multiplied + 2 * std::min(*trainable, multiplied);
    const double tokens_per_s =
        static_cast<double>(sums.tokens) * static_cast<double>(kNsPerS) / static_cast<double>(sums.token_ns);
    const double tflops = per_token * tokens_per_s * 1e-12;
    fact.set("flops_per_token", per_token).set("tflops", tflops).set_text("basis", std::string(kBasis));
    set_share(said, tflops, fact);
    return fact;
  }

  static void set_share(const Said& said, double tflops, Fact& fact) {
    if (said.gpu.empty()) {
      fact.set_text("reason", "the job uses no GPU that is known by name");
      return;
    }
    fact.set_text("gpu", said.gpu);
    const auto precision = precision_of(said);
    if (!precision) {
      fact.set_text("reason", "the precision of its products is not known");
      return;
    }
    fact.set_text("precision", std::string(to_string(*precision)));
    const auto peaks = gpu_peaks(said.gpu);
    const auto peak = peaks ? peak_tflops(*peaks, *precision) : std::nullopt;
    if (!peak) {
      fact.set_text("reason", "what this GPU can do in that precision is not known");
      return;
    }
    const double all = *peak * std::max(said.model.number("devices").value_or(1), 1.0);
    fact.set("peak_tflops", all).set("mfu_pct", 100 * tflops / all);
  }

  RunDescription run_;
  const StepTable* table_;
  std::map<std::string, Said> merged_;  // of other recordings, by process
};

std::unique_ptr<Analyzer> open(const RunDescription& run) { return std::make_unique<ModelAnalyzer>(run); }

}  // namespace

extern constinit const AnalyzerSpec analyzer_model{.id = "model",
                                                   .summary = "The model, its precision, and what it computes.",
                                                   .produces = kSchemas,
                                                   .metrics = {},
                                                   .spans = {},
                                                   .open = open};

}  // namespace hotlap
