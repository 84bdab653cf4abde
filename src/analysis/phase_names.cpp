#include "analysis/phase_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace hotlap {
namespace {

constexpr std::size_t kWordsMax = 8;  // of a name that is a label; what is longer says something else
constexpr std::array<std::string_view, 14> kCommunicationWords{
    "send",    "recv",      "receive",  "allreduce", "allgather",     "reduce", "gather",
    "scatter", "broadcast", "alltoall", "all2all",   "reducescatter", "p2p",    "barrier"};
constexpr std::array<std::string_view, 6> kWaitWords{"loader", "loading", "load", "wait", "fetch", "next"};

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

}  // namespace

PhaseName phase_name(std::string_view operator_name) {
  if (is_autograd(operator_name)) return PhaseName::kAutograd;
  const std::vector<std::string> words = words_of(operator_name);
  if (words.empty()) return PhaseName::kNone;
  const bool communicates =
      std::ranges::any_of(words, [](std::string_view word) { return is_one_of(kCommunicationWords, word); });
  if (communicates) return PhaseName::kCommunication;
  const std::string_view first = words.front();
  if (first == "forward" || first == "fwd") return PhaseName::kForward;
  if (first == "backward" || first == "bwd") return PhaseName::kBackward;
  if (first == "optimizer" || first == "optim") return PhaseName::kOptimizer;
  if (first == "dataloader") return PhaseName::kDataWait;
  if (first == "data" && words.size() > 1 && is_one_of(kWaitWords, words[1])) return PhaseName::kDataWait;
  return PhaseName::kNone;
}

}  // namespace hotlap
