#include "ingest/kernel_messages.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::size_t kNameMax = 64;
constexpr std::size_t kGroupMax = 200;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What follows `key` up to one of `ends`; empty: there is no key.
std::string_view between(std::string_view text, std::string_view key, std::string_view ends) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(ends));
}

// As one word of a note.
std::string word(std::string_view text, std::size_t max = kNameMax) {
  std::string out(trim(text).substr(0, max));
  std::ranges::replace(out, ' ', '_');
  return out;
}

std::string digits_of(std::string_view text) {
  return std::string(text.substr(0, text.find_first_not_of("0123456789")));
}

void put(std::string& note, std::string_view key, std::string_view value) {
  if (!value.empty()) note += format(" {}={}", key, value);
}

Event note(std::string_view what, std::string_view words = {}) {
  return {.t_ns = 0, .kind = EventKind::kNote, .value = -1, .text = format("{} what={}{}", kKernelNote, what, words)};
}

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."
std::optional<Event> xid_of(std::string_view text) {
  std::string_view place = between(text, "NVRM: Xid (", ")");
  if (place.empty()) return std::nullopt;
  if (place.starts_with("PCI:")) place.remove_prefix(4);
  const std::size_t end = text.find("): ");
  const auto number = end == std::string_view::npos ? std::nullopt : parse_i64(digits_of(text.substr(end + 3)));
  if (!number) return std::nullopt;
  const std::string name = word(between(text, "name=", ","));
  const std::string pid = digits_of(between(text, "pid=", ","));
  std::string by;
  put(by, "pid", pid);
  if (!name.starts_with('<')) put(by, "process", name);
  return Event{
      .t_ns = 0, .kind = EventKind::kGpuXid, .value = *number, .text = format("PCI {}: kernel{}", word(place), by)};
}

std::optional<Event> crash_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFaults{
      {{"segfault at", "segfault"},
       {"general protection", "protection"},
       {"trap invalid opcode", "instruction"},
       {"trap divide error", "division"}}};
  const auto* const fault = std::ranges::find_if(kFaults, [&](const auto& one) { return has(text, one.first); });
  if (fault == kFaults.end()) return std::nullopt;
  std::string_view head = text.substr(0, text.find(fault->first));
  if (head.starts_with("traps: ")) head.remove_prefix(7);
  const std::size_t bracket = head.rfind('[');
  if (bracket == std::string_view::npos) return std::nullopt;
  std::string words;
  put(words, "fault", fault->second);
  put(words, "process", word(head.substr(0, bracket)));
  put(words, "pid", digits_of(head.substr(bracket + 1)));
  put(words, "module", word(between(text, " in ", "[ ")));
  return note("crash", words);
}

// "nfs: server n1 not responding, still trying", "Lustre: … Connection to OST1 (at …) was lost", and their ends.
std::optional<Event> mount_of(std::string_view text) {
  const auto told = [](std::string_view what, std::string_view kind, std::string_view server) {
    std::string words;
    put(words, "kind", kind);
    put(words, "server", word(server));
    return note(what, words);
  };
  if (const std::string_view server = between(text, "nfs: server ", " "); !server.empty()) {
    if (has(text, "not responding")) return told("mount_stuck", "NFS", server);
    if (text.ends_with(" OK")) return told("mount_back", "NFS", server);
  }
  if (text.starts_with("Lustre")) {
    if (const auto target = between(text, "Connection to ", " "); has(text, "was lost") && !target.empty())
      return told("mount_stuck", "Lustre", target);
    if (const auto target = between(text, "onnection restored to ", " "); !target.empty())
      return told("mount_back", "Lustre", target);
  }
  if (has(text, "CIFS") && has(text, "has not responded in"))
    return told("mount_stuck", "CIFS", between(text, "\\\\", " "));
  return std::nullopt;
}

// "I/O error, dev sda, sector 12", "ata1.00: failed command", "EXT4-fs error (device sda1)", "nvme nvme0: … timeout".
std::optional<Event> disk_of(std::string_view text) {
  std::string_view device = between(text, "I/O error, dev ", ", ");
  if (device.empty()) device = between(text, "Buffer I/O error on dev ", ", ");
  if (device.empty() && has(text, "-fs error (device ")) device = between(text, "-fs error (device ", "):");
  if (device.empty() && text.starts_with("XFS (") && has(text, "I/O error")) device = between(text, "XFS (", ")");
  if (device.empty() && text.starts_with("nvme ") && has(text, "timeout")) device = between(text, "nvme ", ": ");
  if (device.empty() && text.starts_with("ata") && has(text, "failed command")) device = text.substr(0, text.find(':'));
  if (device.empty()) return std::nullopt;
  std::string words;
  put(words, "device", word(device));
  return note("disk_error", words);
}

std::optional<Event> hardware_of(std::string_view text) {
  if (has(text, "temperature above threshold")) {
    const std::size_t cpu = text.find("CPU");
    std::string words;
    put(words, "device", cpu == std::string_view::npos ? std::string() : word(between(text.substr(cpu), "", ":")));
    return note("hot", words);
  }
  if (has(text, "EDAC") && (has(text, " CE ") || has(text, " UE "))) {
    std::string words;
    put(words, "device", word(between(text, "EDAC ", ":")));
    put(words, "grave", has(text, " UE ") ? "1" : "0");
    return note("memory_error", words);
  }
  if (has(text, "[Hardware Error]") || has(text, "Machine check events logged")) {
    return note("machine_check", has(text, "Uncorrected") || has(text, "fatal") ? " grave=1" : "");
  }
  return std::nullopt;
}

// "INFO: task python3:4711 blocked for more than 122 seconds."
std::optional<Event> hung_of(std::string_view text) {
  const std::string_view task = between(text, "INFO: task ", " ");
  const std::size_t colon = task.rfind(':');
  if (colon == std::string_view::npos || !has(text, "blocked for more than")) return std::nullopt;
  std::string words;
  put(words, "process", word(task.substr(0, colon)));
  put(words, "pid", digits_of(task.substr(colon + 1)));
  put(words, "seconds", digits_of(between(text, "blocked for more than ", " ")));
  return note("hung", words);
}

}  // namespace

// "python3 invoked oom-killer: …", "memory: usage …, limit 8388608kB", "oom-kill:constraint=…,task_memcg=/docker/a",
// "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:…, anon-rss:…kB, …"
std::optional<Event> KernelMessages::take_kill(std::string_view text) {
  if (has(text, " invoked oom-killer:")) {
    constraint_.clear(), group_.clear(), limit_kb_.clear();
    return std::nullopt;
  }
  if (text.starts_with("memory: usage ")) limit_kb_ = digits_of(between(text, "limit ", "k"));
  if (const auto constraint = between(text, "oom-kill:constraint=", ","); !constraint.empty()) {
    constraint_ = constraint == "CONSTRAINT_MEMCG" ? "group" : "host";
    group_ = word(between(text, "task_memcg=", ","), kGroupMax);
  }
  const std::string_view killed = between(text, "Killed process ", "\n");
  if (killed.empty()) return std::nullopt;
  const std::size_t open = killed.find('(');
  const std::size_t close = killed.find(')', open == std::string_view::npos ? 0 : open);
  if (text.starts_with("Memory cgroup out of memory")) constraint_ = "group";
  if (text.starts_with("Out of memory")) constraint_ = "host";
  std::string words;
  put(words, "pid", digits_of(killed));
  if (close != std::string_view::npos) put(words, "process", word(killed.substr(open + 1, close - open - 1)));
  double rss_kb = 0;
  for (const std::string_view part : {"anon-rss:", "file-rss:", "shmem-rss:"})
    rss_kb += parse_f64(digits_of(between(killed, part, "k"))).value_or(0);
  if (rss_kb > 0) put(words, "rss", format("{:.0f}", rss_kb * 1024));
  put(words, "by", constraint_);
  if (constraint_ == "group") {
    if (const auto limit = parse_f64(limit_kb_)) put(words, "limit", format("{:.0f}", *limit * 1024));
    put(words, "group", group_);
  }
  constraint_.clear(), group_.clear(), limit_kb_.clear();
  return note("oom_kill", words);
}

std::optional<Event> KernelMessages::take(std::string_view text_untrusted) {
  if (auto event = take_kill(text_untrusted)) return event;
  for (const auto find : {&xid_of, &crash_of, &mount_of, &disk_of, &hardware_of, &hung_of}) {
    if (auto event = find(text_untrusted)) return event;
  }
  return std::nullopt;
}

// "audit: type=2000 audit(1764583200.123:1): …", "rtc_cmos 00:00: setting system clock to … UTC (1764583200)"
std::optional<std::int64_t> kernel_unix_time(std::string_view text_untrusted) {
  const std::string_view audit = between(text_untrusted, "audit(", ":");
  std::string_view seconds = audit;
  if (seconds.empty() && has(text_untrusted, "setting system clock to"))
    seconds = between(text_untrusted, "UTC (", ")");
  const auto number = parse_f64(seconds);
  constexpr double kFirst = 1e9;
  constexpr double kLast = 4e9;
  if (!number || *number < kFirst || *number > kLast) return std::nullopt;
  return static_cast<std::int64_t>(*number * 1e3) * kNsPerMs;
}

bool is_kernel_text(std::string_view text_untrusted) {
  constexpr std::array<std::string_view, 28> kWords{"Linux version",  "Command line:",
                                                    "NVRM",           "nvidia",
                                                    "oom-killer",     "oom-kill:",
                                                    "out of memory:", "Out of memory",
                                                    "nfs:",           "Lustre",
                                                    "I/O error",      "EXT4-fs",
                                                    "XFS (",          "usb ",
                                                    "audit:",         "systemd[",
                                                    "pci ",           "pcieport",
                                                    "mce:",           "EDAC",
                                                    "segfault at",    "ACPI",
                                                    "eth0:",          "docker0:",
                                                    "IPv6:",          "blocked for more than",
                                                    "Call Trace:",    "nvme"};
  return std::ranges::any_of(kWords, [&](std::string_view one) { return has(text_untrusted, one); }) ||
         KernelMessages().take(text_untrusted);
}

}  // namespace hotlap
