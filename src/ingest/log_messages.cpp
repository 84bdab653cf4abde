#include "ingest/log_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/ascii.h"
#include "base/format.h"
#include "base/text.h"
#include "model/log_message.h"

namespace hotlap {
namespace {

constexpr std::size_t kEventsMax = 4096;     // of one log: a hang repeats its lines for hours
constexpr std::size_t kTransportsMax = 64;   // different ones
constexpr std::size_t kTensorMax = 120;      // characters of a name
constexpr std::size_t kRanksTextMax = 4096;  // of a list of ranks
constexpr int kListingLinesMax = 100'000;    // behind "Missing ranks:"
constexpr double kBytesMax = 1e18;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The number at the begin of `text` behind blanks and brackets: "( 64088," as 64088.
std::optional<double> number_at(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t([:=");
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin);
  const std::size_t end = text.find_first_not_of("0123456789.");
  return parse_f64(text.substr(0, end));
}

// The number behind `key`.
std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  return at == std::string_view::npos ? std::nullopt : number_at(line.substr(at + key.size()));
}

// "1.96 GiB", "256.00 MiB", "512 bytes" at the begin of `text`.
std::optional<double> bytes_at(std::string_view text) {
  std::string_view rest = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::size_t end = rest.find_first_not_of("0123456789.");
  const auto number = parse_f64(rest.substr(0, end));
  if (!number || end == std::string_view::npos) return std::nullopt;
  rest = rest.substr(rest.find_first_not_of(' ', end) == std::string_view::npos ? rest.size()
                                                                                : rest.find_first_not_of(' ', end));
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits{{{"GiB", 1024.0 * 1024 * 1024},
                                                                       {"MiB", 1024.0 * 1024},
                                                                       {"KiB", 1024},
                                                                       {"GB", 1e9},
                                                                       {"MB", 1e6},
                                                                       {"kB", 1e3},
                                                                       {"bytes", 1},
                                                                       {"B", 1}}};
  for (const auto& [unit, factor] : kUnits) {
    if (rest.starts_with(unit) && *number * factor < kBytesMax) return *number * factor;
  }
  return std::nullopt;
}

// The amount before `words`: "75.31 GiB is allocated by PyTorch".
std::optional<double> bytes_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  // Amount and unit are the two words before.
  std::size_t begin = line.find_last_not_of(' ', at == 0 ? 0 : at - 1);
  for (int word = 0; word < 2 && begin != std::string_view::npos; ++word) {
    begin = line.find_last_of(" (;", begin);
    if (word == 0 && begin != std::string_view::npos) begin = line.find_last_not_of(' ', begin);
  }
  return begin == std::string_view::npos ? std::nullopt : bytes_at(line.substr(begin + 1));
}

std::optional<double> bytes_after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? std::nullopt : bytes_at(line.substr(at + words.size()));
}

void put(std::string& text, std::string_view key, std::optional<double> value) {
  if (value) text += format("{}{}={:.0f}", text.empty() ? "" : " ", key, *value);
}

// "[Rank 3]", "Rank 3]", "rank=3": the rank that a message of NCCL's watchdog is of.
std::optional<std::int64_t> rank_in(std::string_view line) {
  for (const std::string_view key : {"Rank ", "rank ", "rank="}) {
    for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
      const std::size_t digits = at + key.size();
      if (digits < line.size() && is_digit(line[digits])) {
        return static_cast<std::int64_t>(*number_at(line.substr(digits)));
      }
    }
  }
  return std::nullopt;
}

// A word up to what ends it: "OpType=ALLREDUCE," as ALLREDUCE.
std::string_view word_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  line = line.substr(at + key.size());
  return line.substr(0, line.find_first_of(" ,;)]\t"));
}

// "0, 1, 2" or "[0,1,2]" at the begin of `text`, as "0,1,2".
std::string ranks_at(std::string_view text) {
  std::string ranks;
  std::string digits;
  for (const char c : text) {
    if (is_digit(c)) {
      digits += c;
      continue;
    }
    if (!digits.empty()) ranks += (ranks.empty() ? "" : ",") + std::exchange(digits, {});
    const bool goes_on = c == ' ' || c == ',' || (c == '[' && ranks.empty());
    if (!goes_on || ranks.size() > kRanksTextMax) return ranks;
  }
  if (!digits.empty()) ranks += (ranks.empty() ? "" : ",") + digits;
  return ranks;
}

std::string tensor_name(std::string_view text) {
  std::string name(trim(text).substr(0, kTensorMax));
  std::ranges::replace(name, ' ', '_');
  return name.empty() ? std::string("?") : name;
}

}  // namespace

void LogMessages::add(std::string_view what, std::int64_t rank, std::string_view words) {
  if (events_.size() >= kEventsMax) return;
  std::string text(what);
  if (!words.empty()) text += " " + std::string(words);
  events_.push_back({.t_ns = 0, .kind = EventKind::kNote, .value = rank, .text = std::move(text)});
}

std::vector<Event> LogMessages::events() { return std::exchange(events_, {}); }

bool LogMessages::take(std::string_view line_untrusted, std::int32_t rank) {
  const std::string clean = strip_control(line_untrusted);
  const std::string_view line = clean;
  take_size(line);
  return take_out_of_memory(line, rank) || take_watchdog(line, rank) || take_stall(line) || take_listing(line) ||
         take_transport(line) || take_checkpoint(line, rank) || take_evaluation(line, rank) || take_failure(line, rank);
}

// "size 4", "world_size=8", "nranks 16".
void LogMessages::take_size(std::string_view line) {
  for (const std::string_view key : {"world_size=", "world size: ", "world_size: ", "WORLD_SIZE=", "nranks ", "nRanks ",
                                     "horovod_size=", "Horovod size: ", "with size "}) {
    const auto size = number_after(line, key);
    if (size && *size >= 1 && *size < 1e7) {
      world_size_ = static_cast<std::int64_t>(*size);
      return;
    }
  }
}

// PyTorch's message of an allocation that failed, in its forms since 1.0; TensorFlow's has the shape only.
bool LogMessages::take_out_of_memory(std::string_view line, std::int32_t rank) {
  const bool is_torch = has(line, "out of memory") && has(line, "Tried to allocate");
  const bool is_tensorflow = has(line, "OOM when allocating tensor");
  const bool is_jax = has(line, "RESOURCE_EXHAUSTED") && has(line, "ut of memory");
  if (!is_torch && !is_tensorflow && !is_jax) return false;
  std::string text;
  put(text, "ask", is_torch ? bytes_after(line, "Tried to allocate ") : bytes_after(line, "allocate "));
  auto total = bytes_before(line, " total capacity");
  if (!total) total = bytes_after(line, "total capacity of ");
  if (!total) total = bytes_after(line, "total capacty of ");
  put(text, "total", total);
  auto free = bytes_before(line, " free;");
  if (!free) free = bytes_before(line, " is free");
  put(text, "free", free);
  auto allocated = bytes_before(line, " already allocated");
  if (!allocated) allocated = bytes_before(line, " is allocated by PyTorch");
  put(text, "allocated", allocated);
  const auto reserved = bytes_before(line, " reserved in total");
  auto gap = bytes_before(line, " is reserved by PyTorch but unallocated");
  if (!gap && reserved && allocated) gap = std::max(*reserved - *allocated, 0.0);
  put(text, "gap", gap);
  put(text, "process", bytes_before(line, " memory in use"));
  if (const std::size_t at = line.find("GPU "); at != std::string_view::npos && at + 4 < line.size()) {
    if (is_digit(line[at + 4])) put(text, "gpu", number_at(line.substr(at + 4)));
  }
  add(kOutOfMemoryNote, rank, text);
  return true;
}

// "… WorkNCCL(SeqNum=64088, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=1800000) ran for 1800253 …"
bool LogMessages::take_watchdog(std::string_view line, std::int32_t rank) {
  const bool has_work = has(line, "SeqNum=") && has(line, "OpType=");
  const auto enqueued = number_after(line, "last enqueued NCCL work: ");
  const auto enqueued_now = enqueued ? enqueued : number_after(line, "last enqueued work: ");
  if (!has_work && !enqueued_now) return false;
  std::string text;
  std::string_view group;
  for (const std::string_view key : {"PG ID ", "[PG ", "PG GUID "}) {
    if (group.empty()) group = word_after(line, key);
  }
  if (!group.empty()) text += format("group={}", std::string(group));
  auto seq = number_after(line, "SeqNum=");
  if (!seq) seq = number_after(line, "Timeout at NCCL work: ");
  put(text, "seq", seq);
  if (const std::string_view op = word_after(line, "OpType="); !op.empty()) {
    text += format("{}op={}", text.empty() ? "" : " ", op);
  }
  put(text, "numel_in", number_after(line, "NumelIn="));
  put(text, "numel_out", number_after(line, "NumelOut="));
  put(text, "timeout_ms", number_after(line, "Timeout(ms)="));
  put(text, "ran_ms", number_after(line, "ran for "));
  put(text, "enqueued", enqueued_now);
  put(text, "completed", number_after(line, "last completed NCCL work: "));
  add(kTimeoutNote, rank_in(line).value_or(rank), text);
  return true;
}

// Horovod's warnings: "tensor [missing ranks: 1, 3]", "tensor [ready ranks: 0, 1, 2]", and the list of later versions.
bool LogMessages::take_stall(std::string_view line) {
  for (const auto& [key, word] : {std::pair{"missing ranks:", "missing"}, std::pair{"ready ranks:", "ready"}}) {
    const std::string small = to_lower(line);
    const std::size_t at = small.find(key);
    if (at == std::string::npos) continue;
    const std::string ranks = ranks_at(line.substr(at + std::string_view(key).size()));
    if (ranks.empty()) {  // "Missing ranks:", then a line for each
      listing_ = Listing::kMissingRanks;
      listing_lines_ = 0;
      return true;
    }
    std::string_view name = line.substr(0, at);
    name = name.substr(0, name.find_last_not_of(" [(") + 1);
    if (const std::size_t blank = name.find_last_of(" >\t"); blank != std::string_view::npos) name = name.substr(blank);
    add(kStallNote, -1, format("{}={} tensor={}", word, ranks, tensor_name(name)));
    return true;
  }
  if (!has(line, "submitted to be reduced, gathered or broadcasted") && !has(line, "Stalled ops") &&
      !has(line, "Stalled ranks:")) {
    return false;
  }
  if (has(line, "Stalled ranks:")) {
    listing_ = Listing::kMissingRanks;
    listing_lines_ = 0;
  }
  return true;
}

// "1: [allreduce.a, allreduce.b ...]": the rank that is missing, and what waits for it.
bool LogMessages::take_listing(std::string_view line) {
  if (listing_ == Listing::kNone) return false;
  // A launcher's "[1,0]<stderr>:" stands before it.
  if (const std::size_t end = line.find(">:"); end != std::string_view::npos && line.starts_with('[')) {
    line = line.substr(end + 2);
  }
  line = trim(line);
  const std::size_t colon = line.find(':');
  const auto rank = colon == std::string_view::npos ? std::nullopt : parse_u64(line.substr(0, colon));
  if (!rank || *rank > 10'000'000 || !has(line.substr(colon), "[") || ++listing_lines_ > kListingLinesMax) {
    listing_ = Listing::kNone;
    return false;
  }
  std::string_view names = line.substr(line.find('[', colon) + 1);
  names = names.substr(0, names.find_first_of(",]"));
  add(kStallNote, -1, format("missing={} tensor={}", *rank, tensor_name(names)));
  return true;
}

// "NCCL INFO NET/Socket : Using [0]eth0:…", "NCCL INFO Using network IB", "… [send] via NET/IB/0/GDRDMA".
bool LogMessages::take_transport(std::string_view line) {
  if (!has(line, "NCCL INFO") && !has(line, "NCCL WARN")) return false;
  std::string text;
  const std::size_t using_at = line.find("Using [");
  const auto device = [&] {
    const std::size_t end = line.find(']', using_at == std::string_view::npos ? 0 : using_at);
    return end == std::string_view::npos || using_at == std::string_view::npos
               ? std::string_view{}
               : line.substr(end + 1).substr(0, line.substr(end + 1).find_first_of(":/ <"));
  };
  if (has(line, "via NET/Socket")) {
    text = "nccl=socket used=1 channel=1";
  } else if (has(line, "Using network Socket")) {
    text = "nccl=socket used=1";
  } else if (has(line, "via NET/IB") || has(line, "Using network IB")) {
    text = "nccl=ib used=1";
  } else if (has(line, "via NET/AWS Libfabric") || has(line, "Using network AWS Libfabric") ||
             has(line, "via NET/Libfabric") || has(line, "Using network Libfabric")) {
    text = "nccl=libfabric used=1";
  } else if (has(line, "NET/IB : No device found")) {
    text = "nccl=ib found=0";
  } else if (has(line, "NET/IB : Using")) {
    text = format("nccl=ib found=1 device={}", tensor_name(device()));
  } else if (has(line, "NET/Socket : Using")) {
    text = format("nccl=socket found=1 device={}", tensor_name(device()));
  } else if (has(line, "via P2P")) {
    text = "nccl=p2p used=1";
  } else if (has(line, "via SHM")) {
    text = "nccl=shm used=1";
  } else {
    return has(line, "NCCL INFO");
  }
  if (transports_.size() < kTransportsMax && ++transports_[text] == 1) add(kTransportNote, -1, text);
  return true;
}

// "Saving checkpoint to …", "saved model at step 500", "Saving model checkpoint to …", "checkpoint saved".
bool LogMessages::take_checkpoint(std::string_view line, std::int32_t rank) {
  const std::string small = to_lower(line.substr(0, 512));
  const bool saves = has(small, "saving") || has(small, "saved ") || has(small, "save checkpoint");
  if (!saves || !(has(small, "checkpoint") || has(small, "model") || has(small, ".pt") || has(small, "state"))) {
    return false;
  }
  add(kSavedNote, rank, has(small, "saving") ? "begin=1" : "end=1");
  return true;
}

namespace {

// "RuntimeError: …", "torch.cuda.OutOfMemoryError: …", also behind a rank or a level: what ends a traceback.
bool ends_traceback(std::string_view line) {
  constexpr std::array<std::string_view, 4> kBefore{": ", "] ", " - ", "ERROR "};
  const auto is_of_name = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
  };
  for (const std::string_view word : {"Error: ", "Exception: "}) {
    const std::size_t at = line.find(word);
    if (at == std::string_view::npos) continue;
    std::size_t begin = at;
    while (begin > 0 && is_of_name(line[begin - 1])) --begin;
    const std::string_view before = line.substr(0, begin);
    const bool is_begin =
        begin == 0 || std::ranges::any_of(kBefore, [&](std::string_view end) { return before.ends_with(end); });
    if (is_begin && begin < at) return true;
  }
  return false;
}

// The cause where the line says one, else "other"; empty: the line says of no failure.
std::string_view failure_kind(std::string_view line) {
  if (has(line, "bus error") && (has(line, "worker") || has(line, "shared memory"))) return "shared_memory";
  if (has(line, "DataLoader worker") && has(line, "killed by signal: Bus error")) return "shared_memory";
  if (has(line, "DataLoader worker") && has(line, "killed by signal: Killed")) return "worker_killed";
  const bool is_gpu = has(line, "CUDA error:") || has(line, "uncorrectable ECC") || has(line, "HIP error:");
  if (is_gpu && !has(line, "out of memory")) return "gpu";
  const bool is_other = has(line, "DataLoader worker (pid") || has(line, "Segmentation fault") ||
                        has(line, "(core dumped)") || has(line, "exitcode: -") || line == "Killed" ||
                        line.starts_with("Traceback (most recent call last)") || ends_traceback(line);
  return is_other ? "other" : "";
}

}  // namespace

// The first line that says a cause counts; what comes behind it is often said by those who waited.
bool LogMessages::take_failure(std::string_view line, std::int32_t rank) {
  constexpr std::size_t kTextMax = 160;
  const std::string_view kind = failure_kind(line);
  if (kind.empty()) return false;
  const bool is_told = failure_ && !failure_->text.ends_with("text=");
  if (is_cause_known_ || (is_told && kind == "other")) return true;
  is_cause_known_ = kind != "other";
  const bool is_head = line.starts_with("Traceback");
  failure_ = Event{.t_ns = 0,
                   .kind = EventKind::kNote,
                   .value = rank,
                   .text = format("{} kind={} text={}", kFailureNote, kind,
                                  is_head ? std::string() : std::string(trim(line).substr(0, kTextMax)))};
  return true;
}

std::optional<Event> LogMessages::failure() {
  is_cause_known_ = false;
  return std::exchange(failure_, std::nullopt);
}

// "***** Running Evaluation *****", "running validation on 5000 examples", "Start inference on 5000 batches".
bool LogMessages::take_evaluation(std::string_view line, std::int32_t rank) {
  const std::string small = to_lower(line.substr(0, 512));
  constexpr std::array<std::string_view, 5> kBegins{"running ", "start ", "starting ", "begin ", "beginning "};
  constexpr std::array<std::string_view, 6> kWhat{"eval",       "validation", "inference",
                                                  "prediction", "the eval",   "the valid"};
  for (const std::string_view begin : kBegins) {
    for (std::size_t at = small.find(begin); at != std::string::npos; at = small.find(begin, at + 1)) {
      const std::string_view behind = std::string_view(small).substr(at + begin.size());
      if (!std::ranges::any_of(kWhat, [&](std::string_view what) { return behind.starts_with(what); })) continue;
      add(kEvaluationNote, rank, "begin=1");
      return true;
    }
  }
  return false;
}

}  // namespace hotlap
