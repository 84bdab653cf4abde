// Is the hook at work in this Python? Runs it as `hotlap run` would and looks for what it recorded.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "cli/shown.h"
#include "record/hook_files.h"
#include "record/identity.h"
#include "record/job_environment.h"
#include "record/runtime_folder.h"
#include "store/home.h"
#include "wire/ring_reader.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPython = "python";
constexpr std::int64_t kQuickNs = 20 * kNsPerS;
constexpr std::int64_t kTorchNs = 120 * kNsPerS;  // a cold import from a network file system
constexpr std::int64_t kStepsWanted = 3;

// Any Python from 2.7 on understands this, so that one that is too old can be named.
constexpr std::string_view kAboutCode = R"(
import json, sys
about = {"executable": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3], "minor": sys.version_info[1],
         "major": sys.version_info[0], "venv": sys.prefix != getattr(sys, "base_prefix", sys.prefix), "torch": None}
try:
    from importlib.metadata import version
    about["torch"] = version("torch")
except Exception:
    pass
print(json.dumps(about))
)";

constexpr std::string_view kStepCode = R"(
import hotlap
for _ in range(4):
    hotlap.step()
)";

constexpr std::string_view kTorchCode = R"(
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
)";

Check made(std::string name, Health health, std::string text, std::string_view mend = {}) {
  return {
      .area = kPython, .name = std::move(name), .health = health, .text = std::move(text), .mend = std::string(mend)};
}

std::string last_line(std::string_view output) {
  const std::string_view text = trim(output);
  const std::size_t end = text.rfind('\n');
  return one_line(end == std::string_view::npos ? text : text.substr(end + 1));
}

std::string how_it_ended(const ChildAnswer& answer) {
  if (answer.is_timed_out) return "did not end in time";
  std::string text = answer.signal ? format("was killed by signal {}", *answer.signal)
                                   : format("ended with code {}", answer.exit_code.value_or(-1));
  const std::string line = last_line(answer.output);
  return line.empty() ? text : text + ": " + line;
}

class StepCounter final : public RecordVisitor {
 public:
  void on_span(const Span& span, std::uint8_t) override { steps += span.kind == SpanKind::kStep ? 1 : 0; }
  void on_name(std::uint32_t, std::string_view) override {}
  void on_info(std::int64_t, std::string_view, std::string_view) override {}
  void on_count(std::uint32_t, std::int64_t, double, std::int64_t, std::uint8_t) override {}
  void on_phase(std::int64_t, std::uint32_t, std::int64_t) override {}
  void on_process(const ProcessRecord&) override {}
  void on_end(std::int64_t, std::uint32_t) override {}

  std::int64_t steps = 0;
};

struct About {
  std::string executable;
  std::string version;
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::string torch;
};

class PythonCheck {
 public:
  PythonCheck(std::string python, const char* const* environment, Checks& out)
      : python_(std::move(python)), environment_(environment), out_(out) {}

  void run(bool is_named) {
    const Result<ChildAnswer> answer =
        ask_child({python_, "-c", std::string(kAboutCode)}, plain_environment(), kQuickNs);
    if (!answer.ok() || !answer->ok() || !read_about(answer->output)) {
      const std::string why = answer.ok() ? python_ + " " + how_it_ended(*answer) : answer.error().message;
      // A machine without Python is still recorded; a Python that was named must work.
      out_.push_back(made("interpreter", is_named ? Health::kBroken : Health::kWarning, one_line(why),
                          "hotlap doctor --python /path/to/python tests another one; without the hook, the machine and "
                          "the job's processes are recorded"));
      return;
    }
    check_about();
    if (about_.major < 3 || (about_.major == 3 && about_.minor < 8)) return;
    if (!prepare()) return;
    check_hook();
    if (!about_.torch.empty()) check_torch();
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }

 private:
  std::vector<std::string> plain_environment() const {
    std::vector<std::string> entries;
    for (const char* const* entry = environment_; *entry != nullptr; ++entry) entries.emplace_back(*entry);
    return entries;
  }

  bool read_about(std::string_view output) {
    const Result<JsonDocument> document = JsonDocument::parse(last_line(output));
    if (!document.ok()) return false;
    const JsonValue root = document->root();
    about_ = {.executable = one_line(root["executable"].text().value_or(python_)),
              .version = one_line(root["version"].text().value_or("?")),
              .major = root["major"].integer().value_or(0),
              .minor = root["minor"].integer().value_or(0),
              .torch = one_line(root["torch"].text().value_or(""))};
    if (root["venv"].truth().value_or(false)) about_.version += ", virtual environment";
    return about_.major > 0;
  }

  void check_about() {
    const bool is_old = about_.major < 3 || (about_.major == 3 && about_.minor < 8);
    out_.push_back(made("interpreter", is_old ? Health::kBroken : Health::kGood,
                        format("{} ({})", about_.executable, about_.version),
                        is_old ? "the hook needs Python 3.8 or later" : ""));
    if (EnvironmentView(environment_).get("HOTLAP") == "0") {
      out_.push_back(made("switch", Health::kWarning, "HOTLAP=0 is set: the hook is off in every job", "unset HOTLAP"));
    }
    out_.push_back(about_.torch.empty()
                       ? made("torch", Health::kNote,
                              "not installed for this Python: only hotlap.step() and hotlap.span() mark steps here")
                       : made("torch", Health::kGood, about_.torch));
  }

  bool prepare() {
    Result<fs::path> runtime = runtime_home();
    if (!runtime.ok()) return false;  // told among the checks of the home
    scratch_ = *runtime / ("doctor-" + new_ulid(system_clock()));
    Result<void> folders = make_private_folders(scratch_);
    Result<fs::path> hook = folders.ok() ? lay_out_hook(scratch_) : Result<fs::path>(folders.error());
    if (!hook.ok()) {
      out_.push_back(
          made("hook", Health::kBroken, hook.error().message, "export TMPDIR=/a/local/folder/where/you/may/write"));
      return false;
    }
    hook_folder_ = *hook;
    return true;
  }

  // Steps that came through the ring, or why there are none.
  Result<std::int64_t> recorded_steps(std::string_view code, std::string_view rings_name, std::int64_t timeout_ns) {
    const fs::path rings = scratch_ / rings_name;
    HOTLAP_TRY(make_private_folders(rings));
    std::vector<std::string> environment = job_environment(
        environment_,
        {.run_id = new_ulid(system_clock()), .ring_folder = rings.string(), .hook_folder = hook_folder_.string()});
    std::erase_if(environment, [](const std::string& entry) { return entry.starts_with("HOTLAP="); });
    HOTLAP_TRY_ASSIGN(const ChildAnswer answer, ask_child({python_, "-c", std::string(code)}, environment, timeout_ns));
    StepCounter counter;
    bool has_ring = false;
    bool is_loaded = false;
    for (const fs::directory_entry& entry : fs::directory_iterator(rings)) {
      const std::string name = entry.path().filename().string();
      const auto parsed = parse_ring_file_name(name);
      if (!parsed) continue;
      is_loaded = true;
      if (parsed->suffix == kRingOffSuffix) {
        HOTLAP_TRY_ASSIGN(const std::string reason, read_off_reason(entry.path().string(), ::geteuid()));
        return Error{ErrorCode::kUnsupported, "the hook is off: " + reason};
      }
      if (parsed->suffix != kRingSuffix) continue;
      has_ring = true;
      HOTLAP_TRY_ASSIGN(RingReader ring, RingReader::open(entry.path().string(), ::geteuid()));
      HOTLAP_TRY(ring.poll(counter));
    }
    const std::string end = answer.ok() ? std::string() : "the test program " + how_it_ended(answer);
    if (!is_loaded) {
      return Error{ErrorCode::kNotFound, "the hook is not loaded: this Python ignores PYTHONPATH" +
                                             (end.empty() ? std::string() : "; " + end)};
    }
    if (!end.empty()) return Error{ErrorCode::kIo, end};
    if (!has_ring) return Error{ErrorCode::kNotFound, "the hook is loaded but recorded nothing"};
    return counter.steps;
  }

  void check_steps(std::string name, std::string_view code, std::string_view rings_name, std::int64_t timeout_ns,
                   std::string_view mend) {
    const Result<std::int64_t> steps = recorded_steps(code, rings_name, timeout_ns);
    if (!steps.ok()) {
      out_.push_back(made(std::move(name), Health::kBroken, one_line(steps.error().message), mend));
    } else if (*steps < kStepsWanted) {
      out_.push_back(made(std::move(name), Health::kBroken, format("{} of 4 steps were seen", *steps), mend));
    } else {
      out_.push_back(made(std::move(name), Health::kGood, format("{} steps seen by the test program", *steps)));
    }
  }

  void check_hook() {
    check_steps("hook", kStepCode, "rings", kQuickNs,
                "pip install hotlap for this Python: its .pth file loads the hook where PYTHONPATH does not reach");
  }

  void check_torch() {
    check_steps("torch hook", kTorchCode, "rings-torch", kTorchNs,
                "mark the steps by hotlap.step() in the training loop, and report torch's version");
  }

  std::string python_;
  const char* const* environment_;
  Checks& out_;
  About about_;
  fs::path scratch_;
  fs::path hook_folder_;
};

}  // namespace

void check_python(const std::string& python, const char* const* environment, Checks& out) {
  PythonCheck(python.empty() ? "python3" : python, environment, out).run(!python.empty());
}

}  // namespace hotlap
