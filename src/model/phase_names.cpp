#include "model/phase_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "base/ascii.h"

namespace hotlap {
namespace {

constexpr std::size_t kWordsMax = 8;  // of a name that is a label; what is longer says something else
constexpr std::array<std::string_view, 14> kCommunicationWords{
    "send",    "recv",      "receive",  "allreduce", "allgather",     "reduce", "gather",
    "scatter", "broadcast", "alltoall", "all2all",   "reducescatter", "p2p",    "barrier"};
constexpr std::array<std::string_view, 6> kWaitWords{"loader", "loading", "load", "wait", "fetch", "next"};
constexpr std::array<std::string_view, 5> kFetchWords{"next", "get", "load", "fetch", "read"};
constexpr std::array<std::string_view, 4> kStepWords{"step", "iteration", "iter", "batch"};
constexpr std::array<std::string_view, 6> kBesideStepWords{"train", "training", "global", "epoch", "mini", "of"};

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// "autograd::engine::evaluate_function: AddmmBackward0", in older versions "AddmmBackward" and
// "torch::autograd::AccumulateGrad" alone.
bool is_autograd(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function") || name.starts_with("torch::autograd::")) return true;
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.remove_suffix(1);
  return name.ends_with("Backward") && name.find("::") == std::string_view::npos;
}

// Lower-case words of a label; none of what is no label: "aten::add", "Optimizer.step#SGD.step", "f(x)".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool is_inside = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      if (!is_inside) words.emplace_back();
      words.back() += static_cast<char>(std::tolower(byte));
      is_inside = true;
    } else if (c == '-' || c == '_' || c == ' ' || c == '.' || c == '/') {
      is_inside = false;
    } else {
      return {};
    }
    if (words.size() > kWordsMax) return {};
  }
  return words;
}

// "next_batch", "fetch data", "batch-generator".
bool names_a_fetch(std::string_view first, std::string_view second) {
  if (first == "batch") return second == "generator";
  return is_one_of(kFetchWords, first) && (second == "batch" || second == "data");
}

// JAX names Python's functions "$loader.py:44 next_batch".
std::string_view without_file(std::string_view name) {
  if (!name.starts_with('$')) return name;
  const std::size_t blank = name.find(' ');
  return blank == std::string_view::npos ? std::string_view{} : name.substr(blank + 1);
}

}  // namespace

PhaseName phase_name(std::string_view operator_name) {
  if (is_autograd(operator_name)) return PhaseName::kAutograd;
  // Waits for the next element of tf.data, and of a TPU for what the host feeds it.
  if (operator_name.starts_with("IteratorGetNext") || operator_name.starts_with("infeed")) return PhaseName::kDataWait;
  const std::vector<std::string> words = words_of(without_file(operator_name));
  if (words.empty()) return PhaseName::kNone;
  const bool communicates =
      std::ranges::any_of(words, [](std::string_view word) { return is_one_of(kCommunicationWords, word); });
  if (communicates) return PhaseName::kCommunication;
  const std::string_view first = words.front();
  if (first == "forward" || first == "fwd") return PhaseName::kForward;
  if (first == "backward" || first == "bwd") return PhaseName::kBackward;
  if (first == "optimizer" || first == "optim") return PhaseName::kOptimizer;
  if (first == "dataloader" || first == "dataload") return PhaseName::kDataWait;
  if (first == "data" && (words.size() == 1 || is_one_of(kWaitWords, words[1]))) return PhaseName::kDataWait;
  if (words.size() == 2 && names_a_fetch(first, words[1])) return PhaseName::kDataWait;
  return PhaseName::kNone;
}

std::optional<StepLabel> step_label(std::string_view name) {
  constexpr std::string_view kSeparators = " _-.:=#[]/,";
  constexpr std::size_t kDigitsMax = 18;  // fit int64
  StepLabel label;
  std::size_t steps = 0;
  std::size_t words = 0;
  for (std::size_t at = 0; at < name.size();) {
    if (kSeparators.find(name[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    if (++words > kWordsMax) return std::nullopt;
    if (is_digit(name[at])) {
      const std::size_t begin = at;
      std::int64_t number = 0;
      for (; at < name.size() && is_digit(name[at]); ++at) {
        if (at - begin == kDigitsMax) return std::nullopt;
        number = number * 10 + (name[at] - '0');
      }
      // That of the step stands behind its word: "epoch 2 step 17", "step 3/100".
      if (steps == 1 && label.number < 0) label.number = number;
      continue;
    }
    std::string word;
    for (; at < name.size() && std::isalpha(static_cast<unsigned char>(name[at])) != 0; ++at) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[at])));
    }
    const bool is_step = is_one_of(kStepWords, word);
    if (!is_step && !is_one_of(kBesideStepWords, word)) return std::nullopt;
    steps += is_step ? 1 : 0;
    if (!label.words.empty()) label.words += ' ';
    label.words += word;
  }
  if (steps != 1) return std::nullopt;
  return label;
}

}  // namespace hotlap
