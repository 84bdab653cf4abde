#include "record/job_tree.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "record/redact.h"

namespace hotlap {
namespace {

constexpr std::int64_t kScanPeriodNs = kNsPerS;
constexpr std::int64_t kScanShare = 200;  // a scan may take 1/200 of the time between scans
constexpr std::int64_t kSettleNs = 3 * kNsPerS;
constexpr std::size_t kCommandBytesMax = 4096;
constexpr std::uint64_t kOldestMinor = 8;  // the hook wants Python 3.8
constexpr std::size_t kEnvironmentBytesMax = 256 * 1024;

std::string_view program_of(std::string_view command) {
  std::string_view program = next_word(command);
  if (const auto slash = program.rfind('/'); slash != std::string_view::npos) program.remove_prefix(slash + 1);
  return program;
}

bool contains_entry(std::string_view environment, std::string_view entry) {
  for (const std::string_view found : split(environment, '\0')) {
    if (found == entry) return true;
  }
  return false;
}

// Its .pth file does not depend on PYTHONPATH.
constexpr std::string_view kWheelHelps = "hotlap's wheel, installed in this Python, works all the same";

// Why no hook can be in a Python that was started with such options; empty: they are no reason.
std::string reason_by_flags(std::string_view command) {
  next_word(command);
  std::string flags;
  for (std::string_view word = next_word(command); word.starts_with("-") && !word.starts_with("--");
       word = next_word(command)) {
    if (word == "-m" || word == "-c") break;
    if (word == "-X" || word == "-W") next_word(command);
    flags += word;
    if (word.find_first_of("mc") != std::string_view::npos) break;  // "-Ic", "-um": what follows is the program's
  }
  if (flags.find('S') != std::string::npos) return "python -S reads neither sitecustomize nor .pth files";
  for (const char flag : {'I', 'E'}) {
    if (flags.find(flag) != std::string::npos) return format("python -{} ignores PYTHONPATH; {}", flag, kWheelHelps);
  }
  return {};
}

// "/usr/bin/python2.7" tells its version; other names do not.
std::string reason_by_version(std::string_view program) {
  constexpr std::string_view kName = "/python";
  const std::size_t at = program.rfind('/');
  if (at == std::string_view::npos || !program.substr(at).starts_with(kName)) return {};
  const std::string_view version = program.substr(at + kName.size());
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) return {};
  const auto major = parse_u64(version.substr(0, dot));
  const auto minor = parse_u64(version.substr(dot + 1));
  if (!major || !minor || *major > 3 || (*major == 3 && *minor >= kOldestMinor)) return {};
  return format("Python {} is older than 3.{}", version, kOldestMinor);
}

bool has_ended(const ProcessStat& stat) { return stat.state == ProcessState::kZombie; }

}  // namespace

JobTree::JobTree(const Host& host, const Clock& clock, JobTreeOptions options)
    : host_(host), clock_(clock), options_(std::move(options)) {
  own_exe_ = host_.read_link("/proc/self/exe").value_or(std::string());
}

std::int64_t JobTree::mono_of_ticks(std::uint64_t start_ticks) const {
  const ClockReading now = clock_.read();
  const std::int64_t boot_ns = static_cast<std::int64_t>(start_ticks) * (kNsPerS / host_.clock_ticks_per_s());
  return boot_ns - (now.boot_ns - now.mono_ns);
}

void JobTree::read_command(Node& node) const {
  Result<std::string> text = host_.read_text(format("/proc/{}/cmdline", node.info.pid));
  if (!text.ok()) return;
  std::vector<std::string> words;
  for (const std::string_view word : split(std::string_view(*text).substr(0, kCommandBytesMax), '\0')) {
    words.emplace_back(word);
  }
  while (!words.empty() && words.back().empty()) words.pop_back();
  std::string command;
  for (const std::string& word : redact_words(words)) {
    if (!command.empty()) command.push_back(' ');
    command += word;
  }
  node.info.command = to_valid_utf8(command);
  node.is_python = program_of(node.info.command).starts_with("python");
}

// The recorder, the watcher and other processes of this program are no part of the job.
bool JobTree::is_ours(std::int32_t pid) const {
  const Result<std::string> exe = host_.read_link(format("/proc/{}/exe", pid));
  return exe.ok() && !own_exe_.empty() && *exe == own_exe_;
}

bool JobTree::has_marker(std::int32_t pid) const {
  if (options_.run_id.empty()) return false;
  const Result<std::string> text = host_.read_text(format("/proc/{}/environ", pid), kEnvironmentBytesMax);
  return text.ok() && contains_entry(*text, "HOTLAP_RUN_ID=" + options_.run_id);
}

void JobTree::update(std::int64_t t_ns, Batch& out) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  if (options_.root_pid == 0 || t_ns < next_scan_ns_) return;
  if (!has_changed() && !must_scan_) {
    next_scan_ns_ = t_ns + kScanPeriodNs;
    return;
  }
  must_scan_ = false;
  const std::int64_t before_ns = clock_.mono_ns();
  scan(t_ns, out);
  const std::int64_t cost_ns = std::max<std::int64_t>(0, clock_.mono_ns() - before_ns);
  next_scan_ns_ = t_ns + std::max(kScanPeriodNs, cost_ns * kScanShare);
}

// The kernel's word that processes may have come or gone: the last number given, and how many tasks there are. One
// small read in place of a listing of /proc.
bool JobTree::has_changed() {
  if (!load_.is_open()) load_ = KeptFile::open(host_, "/proc/loadavg").value_or(KeptFile());
  std::string_view rest;
  if (load_.is_open()) rest = load_.read_record().value_or(std::string_view());
  for (int average = 0; average < 3; ++average) next_word(rest);
  const std::string_view tasks = next_word(rest);
  const std::size_t slash = tasks.find('/');
  const std::uint64_t total = parse_u64(slash == std::string_view::npos ? tasks : tasks.substr(slash + 1)).value_or(0);
  const std::uint64_t last_pid = parse_u64(trim(rest)).value_or(0);
  const bool is_same = total == tasks_total_ && last_pid == last_pid_ && total != 0;
  tasks_total_ = total;
  last_pid_ = last_pid;
  return !is_same;
}

// Whether `pid` may have become another process's since the last scan. The kernel gives numbers in a circle: only those
// up to the last one can have. (A whole turn between two scans would not be seen.)
bool JobTree::is_given_anew(std::int32_t pid) const {
  if (scanned_to_ == 0 || last_pid_ == 0) return true;
  const auto number = static_cast<std::uint64_t>(pid);
  return scanned_to_ <= last_pid_ ? number > scanned_to_ && number <= last_pid_
                                  : number > scanned_to_ || number <= last_pid_;
}

void JobTree::scan(std::int64_t t_ns, Batch& out) {
  const Result<std::vector<std::string>> names = host_.list("/proc");
  if (!names.ok()) return;
  std::vector<std::int32_t> pids;
  for (const std::string& name : *names) {
    if (const auto pid = parse_i64(name); pid && *pid > 0) pids.push_back(static_cast<std::int32_t>(*pid));
  }
  std::sort(pids.begin(), pids.end());

  for (auto node = live_.begin(); node != live_.end();) {
    const bool is_listed = std::binary_search(pids.begin(), pids.end(), node->first);
    const auto stat = is_listed ? read_process_stat(host_, node->first) : std::nullopt;
    const bool is_another = stat && stat->start_ticks != node->second.start_ticks;  // the number is used again
    if (is_listed && !is_another && !(stat && has_ended(*stat))) {
      if (!node->second.is_settled && t_ns - node->second.found_ns >= kSettleNs) settle(node->second, out);
      must_scan_ |= !node->second.is_settled;
      ++node;
      continue;
    }
    end(node->second, t_ns, "unknown", out);
    node = live_.erase(node);
  }
  std::vector<std::int32_t> unknown;
  for (const std::int32_t pid : pids) {
    const bool is_foreign = std::binary_search(foreign_.begin(), foreign_.end(), pid) && !is_given_anew(pid);
    if (!live_.contains(pid) && !is_foreign) unknown.push_back(pid);
  }
  scanned_to_ = last_pid_;
  look_at_new(unknown, t_ns, out);
  std::erase_if(pids, [this](std::int32_t pid) { return live_.contains(pid); });
  foreign_ = std::move(pids);
  rebuild_view();
}

void JobTree::look_at_new(const std::vector<std::int32_t>& pids, std::int64_t t_ns, Batch& out) {
  // A child may have a smaller number than its parent (numbers wrap): repeat until nothing more is found.
  std::vector<std::pair<std::int32_t, ProcessStat>> rest;
  for (const std::int32_t pid : pids) {
    const auto stat = read_process_stat(host_, pid);
    if (stat && !has_ended(*stat)) rest.emplace_back(pid, *stat);
  }
  const auto belongs = [&](std::int32_t pid, const ProcessStat& stat) {
    if (pid == options_.root_pid || live_.contains(stat.parent_pid)) return true;
    return options_.supervisor_pid != 0 && stat.parent_pid == options_.supervisor_pid && !is_ours(pid);
  };
  const auto take_descendants = [&] {
    for (bool found = true; found;) {
      found = false;
      std::erase_if(rest, [&](const auto& candidate) {
        if (!belongs(candidate.first, candidate.second)) return false;
        add(candidate.first, candidate.second, t_ns, out);
        return found = true;
      });
    }
  };
  take_descendants();
  // Only an orphan can have left the tree: the parent of any other decides.
  std::erase_if(rest, [&](const auto& candidate) {
    const auto& [pid, stat] = candidate;
    if (stat.parent_pid > 1 || pid == options_.supervisor_pid || !has_marker(pid) || is_ours(pid)) return false;
    add(pid, stat, t_ns, out);
    return true;
  });
  take_descendants();
}

JobTree::Node* JobTree::add(std::int32_t pid, const ProcessStat& stat, std::int64_t t_ns, Batch& out) {
  if (live_.size() >= options_.processes_max) {
    out.losses.push_back({"record.processes_refused", 1});
    return nullptr;
  }
  Node& node = live_[pid];
  node.start_ticks = stat.start_ticks;
  node.found_ns = t_ns;
  node.info.pid = pid;
  node.info.start_ns = mono_of_ticks(stat.start_ticks);
  if (const auto parent = live_.find(stat.parent_pid); parent != live_.end())
    node.info.parent = parent->second.info.slot;
  node.info.role = pid == options_.root_pid ? ProcessRole::kMain : ProcessRole::kOther;
  read_command(node);
  std::string label = "main";
  if (pid != options_.root_pid) {
    std::int32_t number = 1;
    while (labels_in_use_.contains(label = format("other {}", number))) ++number;
    node.info.index = number;
  }
  assign_slot(node, label, t_ns, out);
  out.processes.push_back(node.info);
  out.events.push_back({node.info.start_ns, EventKind::kProcessStart, node.info.slot, node.info.label});
  return &node;
}

JobTree::Node* JobTree::find_or_add(std::int32_t pid, std::uint64_t start_ticks, std::int64_t t_ns, Batch& out) {
  if (const auto found = live_.find(pid); found != live_.end()) {
    if (found->second.start_ticks == start_ticks) return &found->second;
    end(found->second, t_ns, "unknown", out);  // the number is used again
    live_.erase(found);
  }
  ProcessStat stat = read_process_stat(host_, pid).value_or(ProcessStat{});
  if (stat.start_ticks != start_ticks) stat = {.start_ticks = start_ticks};  // it has ended
  Node* node = add(pid, stat, t_ns, out);
  must_scan_ = true;
  rebuild_view();
  return node;
}

// A free label: the wanted one, or "<label> (2)" and on while another live process has it.
std::string JobTree::free_label(const std::string& wanted) const {
  std::string label = wanted;
  for (int copy = 2; labels_in_use_.contains(label); ++copy) label = format("{} ({})", wanted, copy);
  return label;
}

void JobTree::assign_slot(Node& node, const std::string& wanted, std::int64_t t_ns, Batch& out) {
  ProcessInfo& info = node.info;
  labels_in_use_.erase(info.label);
  const std::string label = free_label(wanted);
  labels_in_use_.insert(label);
  const auto known = slot_of_label_.find(label);
  if (info.slot != 0 && known == slot_of_label_.end()) {
    // What the process was taken for so far was never anybody else: the slot gets another name.
    slot_of_label_.erase(info.label);
  } else {
    if (info.slot != 0) {  // back to a slot that an earlier process had: the one used meanwhile is nobody's
      ProcessInfo vacated = info;
      vacated.pid = 0;
      vacated.end_ns = t_ns;
      vacated.command.clear();
      out.processes.push_back(std::move(vacated));
    }
    info.slot = known != slot_of_label_.end() ? known->second : static_cast<std::uint32_t>(label_of_slot_.size());
    if (info.slot == label_of_slot_.size()) label_of_slot_.emplace_back();
  }
  slot_of_label_[label] = info.slot;
  label_of_slot_[info.slot] = label;
  info.label = label;
}

std::uint32_t JobTree::announce(const HookPlace& place, std::int64_t t_ns, Batch& out) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  Node* node = find_or_add(place.pid, place.start_ticks, t_ns, out);
  if (node == nullptr) return 0;
  ProcessInfo& info = node->info;
  ProcessRole role = place.role;
  // Every plain Python process takes itself for the main one; only the root is.
  if (role == ProcessRole::kMain && place.pid != options_.root_pid) role = ProcessRole::kOther;
  const std::int32_t index = role == ProcessRole::kRank     ? place.rank
                             : role == ProcessRole::kLoader ? place.worker_id
                                                            : info.index;
  if (node->has_place && info.has_hook && info.role == role && info.index == index) return info.slot;
  const bool must_move = role != info.role || index != info.index;
  node->has_place = true;
  info.has_hook = true;
  info.hook_absent_reason.clear();
  if (must_move) take_role(*node, role, index, place.rank, t_ns, out);
  out.processes.push_back(info);
  return info.slot;
}

void JobTree::take_role(Node& node, ProcessRole role, std::int32_t index, std::int32_t rank, std::int64_t t_ns,
                        Batch& out) {
  node.info.role = role;
  node.info.index = index;
  std::string label = role == ProcessRole::kMain ? "main" : format("{} {}", to_string(role), index);
  if (role == ProcessRole::kLoader && rank >= 0) label = format("rank {} {}", rank, label);
  assign_slot(node, label, t_ns, out);
  rebuild_view();
}

std::uint32_t JobTree::attach(const HookPlace& place, std::int64_t t_ns, Batch& out) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  Node* node = find_or_add(place.pid, place.start_ticks, t_ns, out);
  if (node == nullptr) return 0;
  const bool is_news = place.role == ProcessRole::kRank && place.rank >= 0 && node->info.role != ProcessRole::kRank;
  if (is_news && !node->has_place) {
    take_role(*node, place.role, place.rank, place.rank, t_ns, out);
    out.processes.push_back(node->info);
  }
  return node->info.slot;
}

std::uint32_t JobTree::slot_of(std::int32_t pid, std::uint64_t start_ticks) const {
  const auto found = live_.find(pid);
  return found != live_.end() && found->second.start_ticks == start_ticks ? found->second.info.slot : 0;
}

std::int32_t JobTree::pid_seen_here(std::int32_t pid, std::uint64_t start_ticks, std::int64_t t_ns, Batch& out) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  if (is_alive(pid, start_ticks)) return pid;
  const auto find = [&] {
    return std::find_if(live_.begin(), live_.end(), [&](const auto& entry) {
      return entry.second.start_ticks == start_ticks && innermost_pid(entry.first) == pid;
    });
  };
  auto found = find();
  if (found == live_.end() && options_.root_pid != 0 && t_ns >= next_look_ns_) {  // younger than the last scan
    next_look_ns_ = t_ns + kScanPeriodNs;
    scan(t_ns, out);
    found = find();
  }
  return found == live_.end() ? pid : found->first;
}

// What the process itself takes for its pid; 0: unknown.
std::int32_t JobTree::innermost_pid(std::int32_t pid) const {
  const std::string status = host_.read_text(format("/proc/{}/status", pid)).value_or({});
  constexpr std::string_view kKey = "\nNSpid:";  // "NSpid:\t4711\t12": from our namespace inwards
  const std::size_t at = status.find(kKey);
  if (at == std::string::npos) return 0;
  const std::string_view line = std::string_view(status).substr(at + kKey.size());
  std::string_view rest = trim(line.substr(0, line.find('\n')));
  std::string_view last;
  while (!rest.empty()) last = next_word(rest);
  return static_cast<std::int32_t>(parse_i64(last).value_or(0));
}

void JobTree::hook_seen(std::int32_t pid, std::uint64_t start_ticks, std::int64_t t_ns, Batch& out) {
  Node* node = find_or_add(pid, start_ticks, t_ns, out);
  if (node == nullptr || node->info.has_hook) return;
  node->info.has_hook = true;
  node->info.hook_absent_reason.clear();
  out.processes.push_back(node->info);
}

void JobTree::hook_refused(std::int32_t pid, std::uint64_t start_ticks, std::string reason, std::int64_t t_ns,
                           Batch& out) {
  Node* node = find_or_add(pid, start_ticks, t_ns, out);
  if (node == nullptr) return;
  node->info.has_hook = false;
  node->info.hook_absent_reason = std::move(reason);
  out.processes.push_back(node->info);
}

// A few seconds after its start a process has become what it is (exec follows fork), and its hook has spoken or will
// not.
void JobTree::settle(Node& node, Batch& out) {
  node.is_settled = true;
  const ProcessInfo before = node.info;
  read_command(node);
  if (options_.expects_hook && node.is_python && !node.info.has_hook && node.info.hook_absent_reason.empty()) {
    node.info.hook_absent_reason = absent_reason(node.info.pid, node.info);
  }
  if (node.info != before) out.processes.push_back(node.info);
}

std::string JobTree::absent_reason(std::int32_t pid, const ProcessInfo& info) const {
  const std::string program = host_.read_link(format("/proc/{}/exe", pid)).value_or(std::string());
  if (std::string reason = reason_by_version(program); !reason.empty()) return reason;
  if (std::string reason = reason_by_flags(info.command); !reason.empty()) return reason;
  const Result<std::string> environment = host_.read_text(format("/proc/{}/environ", pid), kEnvironmentBytesMax);
  if (!environment.ok()) return "its environment cannot be read";
  if (contains_entry(*environment, "HOTLAP=0")) return "HOTLAP=0 switches it off";
  if (environment->find("HOTLAP_RING_DIR=") == std::string::npos) return "it was started with another environment";
  if (environment->find("/_bootstrap") == std::string::npos) return format("PYTHONPATH was replaced; {}", kWheelHelps);
  return "forked from a process without it, or stopped before it was loaded";
}

bool JobTree::is_alive(std::int32_t pid, std::uint64_t start_ticks) const {
  const auto found = live_.find(pid);
  if (found != live_.end() && found->second.start_ticks != start_ticks) return false;
  const auto stat = read_process_stat(host_, pid);  // anew: one that has ended but was not waited for is still listed
  return stat && stat->start_ticks == start_ticks && !has_ended(*stat);
}

std::uint32_t JobTree::device(std::string_view label, std::uint32_t user, std::int64_t t_ns, Batch& out) {
  HOTLAP_DCHECK(thread_.calls_on_owner());
  if (const auto known = slot_of_label_.find(label); known != slot_of_label_.end()) return known->second;
  const auto slot = static_cast<std::uint32_t>(label_of_slot_.size());
  label_of_slot_.emplace_back(label);
  labels_in_use_.emplace(label);
  slot_of_label_.emplace(label, slot);
  out.processes.push_back({.slot = slot, .parent = user, .label = std::string(label), .start_ns = t_ns});
  return slot;
}

std::string_view JobTree::label_of(std::uint32_t slot) const {
  return slot < label_of_slot_.size() ? std::string_view(label_of_slot_[slot]) : std::string_view();
}

void JobTree::end(Node& node, std::int64_t t_ns, std::string_view how, Batch& out) {
  node.info.end_ns = t_ns;
  const bool lacks_reason = node.is_python && !node.info.has_hook && node.info.hook_absent_reason.empty();
  if (options_.expects_hook && lacks_reason) {
    const std::string reason = reason_by_flags(node.info.command);
    node.info.hook_absent_reason = reason.empty() ? "it ended before the reason could be looked up" : reason;
  }
  labels_in_use_.erase(node.info.label);
  out.processes.push_back(node.info);
  out.events.push_back({t_ns, EventKind::kProcessEnd, node.info.slot, std::string(how)});
}

void JobTree::finish(std::int64_t t_ns, std::string_view main_exit, Batch& out) {
  for (auto& [pid, node] : live_) {
    if (pid == options_.root_pid) {
      end(node, t_ns, main_exit, out);
    } else if (!is_alive(pid, node.start_ticks)) {
      end(node, t_ns, "unknown", out);
    }
  }
}

void JobTree::rebuild_view() {
  view_.clear();
  for (const auto& [pid, node] : live_) view_.push_back({pid, node.info.label});
}

}  // namespace hotlap
