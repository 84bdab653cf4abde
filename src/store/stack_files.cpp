#include "store/stack_files.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "store/run_folder.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

// "training;MainThread;main (train.py:88);step (train.py:41) 12"
std::optional<SampledStack> parse_line(std::string_view line) {
  const std::size_t blank = line.rfind(' ');
  const std::size_t phase_end = line.find(';');
  if (blank == std::string_view::npos || phase_end >= blank) return std::nullopt;
  const std::size_t thread_end = line.find(';', phase_end + 1);
  const auto samples = parse_u64(line.substr(blank + 1));
  if (thread_end >= blank || !samples || *samples == 0) return std::nullopt;
  return SampledStack{.phase = line.substr(0, phase_end),
                      .thread = line.substr(phase_end + 1, thread_end - phase_end - 1),
                      .frames = line.substr(thread_end + 1, blank - thread_end - 1),
                      .samples = *samples};
}

}  // namespace

Result<void> read_stacks(const fs::path& run_folder, const std::function<Result<void>(const SampledStack&)>& visit) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_folder / kProfileFolder, failed)) {
    if (entry.path().extension() == ".folded" && files.size() < kStackFilesMax) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const std::string name = file.stem().native();
    const auto pid = parse_i64(std::string_view(name).substr(0, name.find('-')));
    if (!pid || *pid <= 0 || *pid > INT32_MAX) continue;
    // One that is being replaced, or is nobody's business: the others count.
    const Result<std::string> read = read_regular_file(file, kStackFileBytesMax);
    if (!read.ok()) continue;
    const std::string text = strip_control(to_valid_utf8(*read));
    std::string_view rest(text);
    for (std::string_view line; next_line(rest, line);) {
      std::optional<SampledStack> stack = parse_line(line);
      if (!stack) continue;
      stack->pid = static_cast<std::int32_t>(*pid);
      HOTLAP_TRY(visit(*stack));
    }
  }
  return {};
}

}  // namespace hotlap
