#include "support/fake_host.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/clock.h"
#include "base/format.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "collect/mounts.h"

namespace hotlap::test {
namespace {

namespace fs = std::filesystem;

struct NamedError {
  std::string_view name;
  int number;
};
constexpr std::array kErrors{NamedError{"none", 0},
                             NamedError{"EACCES", EACCES},
                             NamedError{"EIO", EIO},
                             NamedError{"EINVAL", EINVAL},
                             NamedError{"ESRCH", ESRCH},
                             NamedError{"ESTALE", ESTALE},
                             NamedError{"EOPNOTSUPP", EOPNOTSUPP}};

std::optional<int> error_number(std::string_view name) {
  for (const NamedError& error : kErrors) {
    if (error.name == name) return error.number;
  }
  return std::nullopt;
}

Error bad_script(std::size_t line, std::string_view what) {
  return Error{ErrorCode::kInvalidInput, format("line {}: {}", line, what)};
}

}  // namespace

Result<std::unique_ptr<FakeHost>> FakeHost::parse(std::string_view script) {
  std::unique_ptr<FakeHost> host(new FakeHost);
  std::string_view line;
  std::size_t number = 0;
  Step* file = nullptr;
  while (next_line(script, line)) {
    ++number;
    if (!line.starts_with('@')) {
      if (file != nullptr)
        file->rest.append(line).append("\n");
      else if (!trim(line).empty() && !line.starts_with('#'))
        return bad_script(number, "text outside of a file");
      continue;
    }
    file = nullptr;
    Step step{.line = number, .verb = std::string(next_word(line))};
    step.target = next_word(line);
    step.rest = trim(line);
    if (step.verb == "@tick") {
      const auto t_ns = parse_duration_ns(step.target);
      if (!t_ns) return bad_script(number, "@tick takes a time: 500ms");
      host->ticks_.push_back(Tick{*t_ns, {}});
      continue;
    }
    if (host->ticks_.empty()) return bad_script(number, "before the first @tick");
    std::vector<Step>& steps = host->ticks_.back().steps;
    steps.push_back(std::move(step));
    if (steps.back().verb == "@file" || steps.back().verb == "@nvml") file = &steps.back();
  }
  std::string name = (fs::temp_directory_path() / "hotlap-host-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return errno_error(name, errno);
  host->root_ = name;
  return host;
}

Result<std::unique_ptr<FakeHost>> FakeHost::load(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return Error{ErrorCode::kNotFound, file.string() + ": cannot be read"};
  std::ostringstream text;
  text << in.rdbuf();
  Result<std::unique_ptr<FakeHost>> host = parse(text.str());
  if (!host.ok()) return std::move(host).error().with_context(file.string());
  return host;
}

FakeHost::~FakeHost() {
  {
    std::unique_lock lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return waiting_ == 0; });
  }
  std::error_code ignored;
  if (!root_.empty()) fs::remove_all(root_, ignored);
}

Result<void> FakeHost::advance() {
  if (next_tick_ == ticks_.size()) return Error{ErrorCode::kInvalidInput, "no tick is left"};
  const Tick& tick = ticks_[next_tick_++];
  // Any monotonic time will do; not 0, which a collector could take for "never".
  t_ns_ = 100 * kNsPerS + tick.t_ns;
  for (const Step& step : tick.steps) HOTLAP_TRY(apply(step));
  processes_.clear();
  for (const auto& [pid, slot] : slots_) processes_.push_back({pid, slot});
  return {};
}

Result<void> FakeHost::apply(const Step& step) {
  const std::lock_guard lock(mutex_);
  if (step.verb == "@file" || step.verb == "@link" || step.verb == "@dir" || step.verb == "@remove")
    return apply_to_files(step);
  if (step.verb == "@error") {
    const auto error = error_number(step.rest);
    if (!error) return bad_script(step.line, "@error takes a path and an errno");
    errors_.insert_or_assign(step.target, *error);
    return {};
  }
  if (step.verb == "@usage") return apply_usage(step);
  if (step.verb == "@nvml") return apply_nvml(step);
  if (step.verb == "@clock") {
    has_real_clock_ = step.target == "real";
    return {};
  }
  const auto pid = parse_i64(step.target);
  if (!pid) return bad_script(step.line, "a process id is expected");
  const auto id = static_cast<std::int32_t>(*pid);
  if (step.verb == "@job") {
    root_pid_ = id;
  } else if (step.verb == "@process") {
    if (step.rest == "gone")
      slots_.erase(id);
    else
      slots_[id] = step.rest;
  } else if (step.verb == "@cpu_ns") {
    const auto spent = parse_u64(step.rest);
    if (spent)
      cpu_ns_[id] = *spent;
    else
      cpu_ns_.erase(id);
  } else {
    return bad_script(step.line, "unknown word " + step.verb);
  }
  return {};
}

Result<void> FakeHost::apply_to_files(const Step& step) const {
  const fs::path path = root_.string() + step.target;
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (step.verb == "@dir") {
    fs::create_directories(path, failed);
  } else if (step.verb == "@remove") {
    if (!fs::exists(fs::symlink_status(path))) return bad_script(step.line, step.target + " is not there");
    fs::remove_all(path, failed);
  } else if (step.verb == "@link") {
    fs::remove(path, failed);
    fs::create_symlink(step.rest, path, failed);
  } else {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << step.rest;
    if (!out) return bad_script(step.line, "cannot be written");
  }
  if (failed) return bad_script(step.line, failed.message());
  return {};
}

Result<void> FakeHost::apply_usage(const Step& step) {
  Usage usage;
  std::string_view rest(step.rest);
  if (rest == "hangs") {
    usage.hangs = true;
  } else if (const auto error = error_number(rest)) {
    usage.error = *error;
  } else {
    std::uint64_t* const fields[] = {&usage.answer.total_bytes, &usage.answer.free_bytes, &usage.answer.available_bytes,
                                     &usage.answer.inodes_total, &usage.answer.inodes_free};
    for (std::uint64_t* field : fields) {
      const auto number = parse_u64(next_word(rest));
      if (!number) return bad_script(step.line, "@usage takes five numbers, an errno or hangs");
      *field = *number;
    }
  }
  usages_.insert_or_assign(unescape_path(step.target), usage);
  changed_.notify_all();
  return {};
}

// The library keeps its state for as long as the test's process: the first script of a host begins anew.
Result<void> FakeHost::apply_nvml(const Step& step) {
  const bool is_first = nvml_.empty();
  nvml_ = format("{}/{}/libnvidia-ml.so.1", HOTLAP_FAKE_NVML, step.target);
  const Result<SharedLibrary> library = SharedLibrary::open(nvml_);
  if (!library.ok()) return bad_script(step.line, library.error().message);
  void (*run)(const char*) = nullptr;
  library->bind(run, {"fake_nvml_script"});
  if (run == nullptr) return bad_script(step.line, "not the fake library");
  run(((is_first ? "reset\n" : "") + step.rest).c_str());
  return {};
}

// Never the real machine's.
std::string FakeHost::library(std::string_view name) const { return nvml_.empty() ? format("/none/{}", name) : nvml_; }

TickInfo FakeHost::tick() const {
  return {.t_ns = t_ns_, .number = next_tick_ - 1, .job = {.root_pid = root_pid_, .processes = processes_}};
}

bool FakeHost::hangs(std::string_view mount_point) const {
  const std::lock_guard lock(mutex_);
  const auto found = usages_.find(mount_point);
  return found != usages_.end() && found->second.hangs;
}

std::string FakeHost::resolve(std::string_view absolute) const { return root_.string().append(absolute); }

int FakeHost::injected_error(std::string_view absolute) const {
  const std::lock_guard lock(mutex_);
  const auto found = errors_.find(absolute);
  return found == errors_.end() ? 0 : found->second;
}

Result<FilesystemUsage> FakeHost::filesystem_usage(std::string_view mount_point) const {
  std::unique_lock lock(mutex_);
  const auto find = [&] { return usages_.find(mount_point); };
  ++waiting_;
  changed_.wait(lock, [&] { return is_closing_ || find() == usages_.end() || !find()->second.hangs; });
  --waiting_;
  if (is_closing_) changed_.notify_all();
  const auto found = find();
  if (is_closing_ || found == usages_.end()) return errno_error(mount_point, ENOENT);
  if (found->second.error != 0) return errno_error(mount_point, found->second.error);
  return found->second.answer;
}

Result<std::uint64_t> FakeHost::process_cpu_ns(std::int32_t pid) const {
  const std::lock_guard lock(mutex_);
  const auto found = cpu_ns_.find(pid);
  if (found == cpu_ns_.end()) return errno_error(format("process {}", pid), ESRCH);
  return found->second;
}

}  // namespace hotlap::test
