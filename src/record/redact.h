#pragma once
// Takes secrets out of command lines and keeps only the harmless part of an environment. Errs on the side of hiding.
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hotlap {

// What stands in a secret's place.
inline constexpr std::string_view kRedacted = "***";

// The words of a command line with the values of secret-sounding options and variables (--api-key X, TOKEN=X), the
// password of URLs, authorization headers and well-known token shapes (AKIA…, hf_…, ghp_…) replaced.
std::vector<std::string> redact_words(std::span<const std::string> words);
// The same for one text without word boundaries that could be trusted: /proc/PID/cmdline joined by spaces.
std::string redact_text(std::string_view text);

// Names that may be kept: OMP_* CUDA_* NCCL_* TORCH_* SLURM_* … and none that sounds like a secret.
bool is_environment_recorded(std::string_view name);
// The recorded part of `environment` ("NAME=value" entries, null-terminated), values redacted and bounded.
std::map<std::string, std::string> recorded_environment(const char* const* environment);

}  // namespace hotlap
