#include "rules/framework_words.h"

#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/format.h"

namespace hotlap {
namespace {

struct Words {
  std::string_view framework;  // a part of its name, in lower case
  std::string_view before;
  std::string_view behind;
};
// The first that fits counts.
constexpr std::array kWords{Words{"transformers", "TrainingArguments(dataloader_num_workers=", ")"},
                            Words{"huggingface", "TrainingArguments(dataloader_num_workers=", ")"},
                            Words{"hugging face", "TrainingArguments(dataloader_num_workers=", ")"},
                            Words{"trl", "TrainingArguments(dataloader_num_workers=", ")"},
                            Words{"lightning", "DataLoader(num_workers=", ") in train_dataloader()"},
                            Words{"ultralytics", "model.train(workers=", ")"},
                            Words{"yolo", "model.train(workers=", ")"},
                            Words{"detectron2", "cfg.DATALOADER.NUM_WORKERS = ", ""},
                            Words{"mmengine", "train_dataloader.num_workers=", ""},
                            Words{"torch", "DataLoader(num_workers=", ")"},
                            Words{"accelerate", "DataLoader(num_workers=", ")"}};

}  // namespace

std::string workers_change(const FactTable& facts, long workers) {
  const Fact* told = facts.find("job.told");
  std::string framework = told == nullptr ? std::string() : std::string(told->text("framework").value_or(""));
  for (char& c : framework) c = to_lower(c);
  for (const Words& words : kWords) {
    if (framework.find(words.framework) != std::string::npos)
      return format("{}{}{}", words.before, workers, words.behind);
  }
  return format("num_workers={}", workers);
}

}  // namespace hotlap
