// Nsight Systems' SQLite export: kernels, copies and fills of memory, calls of the CUDA runtime and driver, NVTX
// ranges.
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "ingest/byte_stream.h"
#include "ingest/importer.h"
#include "ingest/trace_names.h"

namespace hotlap {
namespace {

constexpr int kValueBytesMax = 16 << 20;
constexpr std::size_t kNamesMax = 1'000'000;
constexpr std::size_t kProcessesMax = 4096;
constexpr std::size_t kNameMax = 1024;  // bytes
constexpr std::int64_t kTimeMaxNs = INT64_MAX / 4;
constexpr std::int64_t kPushPopRange = 59;  // ENUM_NSYS_EVENT_TYPE
constexpr std::int64_t kStartEndRange = 60;
constexpr std::int64_t kIdentifierMask = 0xFFFFFF;  // globalTid: hypervisor, machine, 24 bits of pid and of tid

// Closes what it opened. Every text of a query is ours; what the file holds is data.
class Export {
 public:
  Export() = default;
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;
  ~Export() { sqlite3_close(db_); }

  Result<void> open(const std::filesystem::path& path) {
    if (sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK) {
      return Error{ErrorCode::kIo, format("{}: {}", path.string(), sqlite3_errmsg(db_))};
    }
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);  // a view in it must not run functions
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, kValueBytesMax);
    return {};
  }

  // Whether it can be read at all; a file that is shorter than its head says cannot.
  bool is_sound() {
    return query("SELECT count(*) FROM sqlite_master", [](sqlite3_stmt*) {});
  }

  // A real table, not a view that a hostile file might have put in its place.
  bool has(std::string_view table) {
    bool found = false;
    (void)query("SELECT name FROM sqlite_master WHERE type = 'table'",
                [&](sqlite3_stmt* row) { found |= text(row, 0) == table; });
    return found;
  }
  bool has_column(std::string_view table, std::string_view column) {
    bool found = false;
    (void)query(format("PRAGMA table_info({})", table), [&](sqlite3_stmt* row) { found |= text(row, 1) == column; });
    return found;
  }

  // Calls take(row) for each; false when the table ended in damage.
  template <class F>
  bool query(const std::string& sql, F take) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return false;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) take(statement);
    sqlite3_finalize(statement);
    return code == SQLITE_DONE;
  }

  static std::optional<std::int64_t> number(sqlite3_stmt* row, int column) {
    if (sqlite3_column_type(row, column) != SQLITE_INTEGER) return std::nullopt;
    return sqlite3_column_int64(row, column);
  }
  static std::string text(sqlite3_stmt* row, int column) {
    if (sqlite3_column_type(row, column) != SQLITE_TEXT) return {};
    const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
  }

 private:
  sqlite3* db_ = nullptr;
};

// "cudaLaunchKernel_v7000" → "cudaLaunchKernel", as other profilers name it.
std::string without_version(std::string name) {
  const std::size_t mark = name.rfind("_v");
  const bool is_version = mark != std::string::npos && mark + 2 < name.size() &&
                          name.find_first_not_of("0123456789", mark + 2) == std::string::npos;
  if (is_version) name.resize(mark);
  return name;
}

// "aten::add, seq = 12, op_id = 34": what PyTorch's emit_nvtx puts behind an operator's name.
struct OperatorText {
  std::string name;
  std::int64_t id = -1;
  std::int64_t sequence = -1;
};
OperatorText read_operator(std::string text) {
  OperatorText found{.name = std::move(text)};
  std::size_t end = std::string::npos;
  for (const std::string_view key : {", seq = ", ", op_id = "}) {
    const std::size_t at = found.name.find(key);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + key.size();
    const std::size_t stop = found.name.find_first_not_of("0123456789", begin);
    const auto value = parse_i64(std::string_view(found.name).substr(begin, stop - begin));
    (key == ", seq = " ? found.sequence : found.id) = value.value_or(-1);
    end = std::min(end, at);
  }
  if (end != std::string::npos) found.name.resize(end);
  return found;
}

class NsysImport {
 public:
  NsysImport(Export& file, ImportSink& out) : file_(file), out_(out) {}

  std::uint64_t run() {
    tell_clock();
    read_names();
    read_kernels();
    read_copies();
    read_fills();
    read_runtime();
    read_ranges();
    return events_;
  }

 private:
  void damaged() { out_.count_loss("ingest.input_damaged", 1, 0); }

  // Times are of the machine's clock at the start of the session, which is also told as Unix time.
  void tell_clock() {
    std::optional<std::int64_t> unix_ns;
    std::optional<std::int64_t> clock_ns = 0;
    if (file_.has("TARGET_INFO_SESSION_START_TIME")) {
      const bool has_clock = file_.has_column("TARGET_INFO_SESSION_START_TIME", "systemClockNs");
      (void)file_.query(format("SELECT utcEpochNs, {} FROM TARGET_INFO_SESSION_START_TIME LIMIT 1",
                               has_clock ? "systemClockNs" : "0"),
                        [&](sqlite3_stmt* row) {
                          unix_ns = Export::number(row, 0);
                          clock_ns = Export::number(row, 1);
                        });
    }
    const bool is_known =
        unix_ns && clock_ns && *unix_ns > 0 && *unix_ns < kTimeMaxNs * 2 && *clock_ns >= 0 && *clock_ns < kTimeMaxNs;
    out_.clock({.offset_ns = is_known ? *unix_ns - *clock_ns : 0,
                .uncertainty_ns = is_known ? 0 : -1,
                .is_absolute = is_known});
  }

  void read_names() {
    const bool is_sound = file_.query("SELECT id, value FROM StringIds", [&](sqlite3_stmt* row) {
      const auto id = Export::number(row, 0);
      if (id && texts_.size() < kNamesMax) texts_[*id] = Export::text(row, 1).substr(0, kNameMax);
    });
    if (!is_sound) damaged();
  }
  std::uint32_t name(std::string_view text) { return out_.name(strip_control(text.substr(0, kNameMax))); }
  std::uint32_t name_of(std::optional<std::int64_t> id, bool is_call) {
    if (!id) return 0;
    const auto known = name_ids_.find({*id, is_call});
    if (known != name_ids_.end()) return known->second;
    const auto found = texts_.find(*id);
    if (found == texts_.end()) return 0;
    return name_ids_[{*id, is_call}] = name(is_call ? without_version(found->second) : found->second);
  }

  std::uint32_t device(std::optional<std::int64_t> id) {
    if (!id || *id < 0 || *id > 10'000) return 0;
    return slot(-1 - *id, [&] { return ProcessInfo{.label = format("gpu{}", *id)}; });
  }
  std::uint32_t process(std::optional<std::int64_t> global_id) {
    if (!global_id) return 0;
    const std::int64_t pid = (*global_id >> 24) & kIdentifierMask;
    // The first one that does anything is the main one; several are ranks in the order in which they come.
    return slot(pid, [&] {
      ProcessInfo info{.pid = static_cast<std::int32_t>(pid), .role = ProcessRole::kMain};
      if (processes_ > 0) info = {.pid = info.pid, .role = ProcessRole::kOther};
      ++processes_;
      return info;
    });
  }
  template <class F>
  std::uint32_t slot(std::int64_t key, F make) {
    const auto found = slots_.find(key);
    if (found != slots_.end()) return found->second;
    if (slots_.size() == kProcessesMax) return 0;
    return slots_.emplace(key, out_.process(make())).first->second;
  }

  // False: not to be used, and counted.
  bool place(sqlite3_stmt* row, Span& span) {
    const auto start = Export::number(row, 0);
    const auto end = Export::number(row, 1);
    if (!start || *start < 0 || *start > kTimeMaxNs) {
      out_.count_loss("ingest.times_invalid", 1, 0);
      return false;
    }
    span.start_ns = *start;
    if (end && *end >= *start && *end <= kTimeMaxNs) {
      span.duration_ns = *end - *start;
    } else {
      out_.count_loss(end ? "ingest.durations_invalid" : "ingest.begins_unmatched", 1, 0);
    }
    ++events_;
    return true;
  }
  static std::uint32_t narrow(std::optional<std::int64_t> id) {
    return id && *id >= 0 && *id <= UINT32_MAX ? static_cast<std::uint32_t>(*id) : 0;
  }

  void read_kernels() {
    if (!file_.has("CUPTI_ACTIVITY_KIND_KERNEL")) return;
    const bool is_sound = file_.query(
        "SELECT start, end, deviceId, streamId, correlationId, demangledName, shortName FROM "
        "CUPTI_ACTIVITY_KIND_KERNEL",
        [&](sqlite3_stmt* row) {
          Span span{.kind = SpanKind::kKernel};
          if (!place(row, span)) return;
          span.process = device(Export::number(row, 2));
          span.thread = narrow(Export::number(row, 3));
          span.value_a = Export::number(row, 4).value_or(-1);
          span.name = name_of(Export::number(row, 5), false);
          if (span.name == 0) span.name = name_of(Export::number(row, 6), false);
          out_.span(span);
        });
    if (!is_sound) damaged();
  }

  // Named as Kineto names them: what reads those names need not know where they come from.
  void read_copies() {
    constexpr std::array<std::string_view, 11> kKinds{"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                      "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    constexpr std::array<std::string_view, 5> kMemory{"Pageable", "Pinned", "Device", "Array", "Managed"};
    if (!file_.has("CUPTI_ACTIVITY_KIND_MEMCPY")) return;
    const bool is_sound = file_.query(
        "SELECT start, end, deviceId, streamId, correlationId, bytes, copyKind, srcKind, dstKind "
        "FROM CUPTI_ACTIVITY_KIND_MEMCPY",
        [&](sqlite3_stmt* row) {
          Span span{.kind = SpanKind::kTransfer};
          if (!place(row, span)) return;
          const auto kind = static_cast<std::size_t>(Export::number(row, 6).value_or(0));
          const auto from = static_cast<std::size_t>(Export::number(row, 7).value_or(99));
          const auto to = static_cast<std::size_t>(Export::number(row, 8).value_or(99));
          std::string text = format("Memcpy {}", kind < kKinds.size() ? kKinds[kind] : kKinds[0]);
          if (from < kMemory.size() && to < kMemory.size()) text += format(" ({} -> {})", kMemory[from], kMemory[to]);
          give_transfer(row, span, text);
        });
    if (!is_sound) damaged();
  }
  void read_fills() {
    if (!file_.has("CUPTI_ACTIVITY_KIND_MEMSET")) return;
    const bool is_sound =
        file_.query("SELECT start, end, deviceId, streamId, correlationId, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET",
                    [&](sqlite3_stmt* row) {
                      Span span{.kind = SpanKind::kTransfer};
                      if (place(row, span)) give_transfer(row, span, "Memset (Device)");
                    });
    if (!is_sound) damaged();
  }
  void give_transfer(sqlite3_stmt* row, Span span, std::string_view text) {
    span.process = device(Export::number(row, 2));
    span.thread = narrow(Export::number(row, 3));
    span.value_a = Export::number(row, 4).value_or(-1);
    span.value_b = Export::number(row, 5).value_or(-1);
    span.name = name(text);
    out_.span(span);
  }

  void read_runtime() {
    if (!file_.has("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    const bool is_sound = file_.query(
        "SELECT start, end, globalTid, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME", [&](sqlite3_stmt* row) {
          Span span{.kind = SpanKind::kRuntime};
          if (!place(row, span)) return;
          const auto thread = Export::number(row, 2);
          span.process = process(thread);
          span.thread = thread ? static_cast<std::uint32_t>(*thread & kIdentifierMask) : 0;
          span.value_a = Export::number(row, 3).value_or(-1);
          span.name = name_of(Export::number(row, 4), true);
          out_.span(span);
        });
    if (!is_sound) damaged();
  }

  void read_ranges() {
    if (!file_.has("NVTX_EVENTS")) return;
    const bool has_text_id = file_.has_column("NVTX_EVENTS", "textId");
    const bool is_sound = file_.query(
        format("SELECT start, end, globalTid, eventType, text, {} FROM NVTX_EVENTS", has_text_id ? "textId" : "NULL"),
        [&](sqlite3_stmt* row) {
          const auto type = Export::number(row, 3);
          if (type != kPushPopRange && type != kStartEndRange) {  // marks, names, counters
            return out_.count_loss("ingest.events_skipped", 1, 0);
          }
          Span span{.kind = SpanKind::kUser};
          if (!place(row, span)) return;
          const auto thread = Export::number(row, 2);
          span.process = process(thread);
          span.thread = thread ? static_cast<std::uint32_t>(*thread & kIdentifierMask) : 0;
          std::string text = Export::text(row, 4);
          if (const auto id = Export::number(row, 5); text.empty() && id) {
            const auto found = texts_.find(*id);
            if (found != texts_.end()) text = found->second;
          }
          give_range(span, std::move(text));
        });
    if (!is_sound) damaged();
  }
  void give_range(Span span, std::string text) {
    const NamedMeaning meaning = meaning_of_name(text);
    OperatorText found = read_operator(std::move(text));
    if (found.name.find("::") != std::string::npos && (found.id >= 0 || found.name.starts_with("aten::"))) {
      span.kind = SpanKind::kOperator;
      span.value_a = found.id;
      span.value_b = found.sequence;
    }
    switch (meaning.meaning) {
      case NameMeaning::kStep:
        span.kind = SpanKind::kStep;
        span.step = meaning.step;
        break;
      case NameMeaning::kDataWait: span.kind = SpanKind::kDataWait; break;
      case NameMeaning::kForward: span.kind = SpanKind::kForward; break;
      case NameMeaning::kBackward: span.kind = SpanKind::kBackward; break;
      case NameMeaning::kOptimizer: span.kind = SpanKind::kOptimizer; break;
      default:
        if (span.kind == SpanKind::kUser) span.kind = kind_of_label(found.name);
        break;
    }
    span.name = name(found.name);
    out_.span(span);
  }

  Export& file_;
  ImportSink& out_;
  std::map<std::int64_t, std::string> texts_;  // StringIds
  std::map<std::pair<std::int64_t, bool>, std::uint32_t> name_ids_;
  std::map<std::int64_t, std::uint32_t> slots_;  // by pid; devices by -1 - id
  std::size_t processes_ = 0;
  std::uint64_t events_ = 0;
};

// Its tables' definitions stand at its begin, also of a file that is cut off.
Error damaged_file(const std::filesystem::path& path) {
  constexpr std::size_t kHeadBytes = std::size_t{64} << 10;
  std::vector<std::byte> head(kHeadBytes);
  const Result<std::unique_ptr<ByteStream>> stream = ByteStream::open(path);
  const Result<std::size_t> filled = stream.ok() ? (*stream)->read(head) : Result<std::size_t>(std::size_t{0});
  const std::string_view text = as_text(ByteView(head).first(filled.ok() ? *filled : 0));
  const bool is_of_nsight =
      text.find("CUPTI_ACTIVITY_KIND_") != std::string_view::npos || text.find("NVTX_EVENTS") != std::string_view::npos;
  return {
      ErrorCode::kCorrupt,
      format("{}: {} that is damaged or cut off: SQLite cannot read it; {}", path.filename().string(),
             is_of_nsight ? "an export of Nsight Systems" : "an SQLite file",
             is_of_nsight ? "copy it again, or export it again with `nsys export --type sqlite`" : "copy it again")};
}

Result<ImportStats> open_path(const std::filesystem::path& path, ImportSink& out) {
  Export file;
  HOTLAP_TRY(file.open(path));
  if (!file.is_sound()) return damaged_file(path);
  if (!file.has("StringIds") ||
      !(file.has("CUPTI_ACTIVITY_KIND_KERNEL") || file.has("CUPTI_ACTIVITY_KIND_RUNTIME") || file.has("NVTX_EVENTS"))) {
    return Error{ErrorCode::kInvalidInput,
                 format("{}: an SQLite file, but not of Nsight Systems with CUDA or NVTX events: `nsys export --type "
                        "sqlite` makes one",
                        path.filename().string())};
  }
  const std::uint64_t events = NsysImport(file, out).run();
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  return ImportStats{.bytes = ignored ? 0 : bytes, .events = events};
}

// What tables it has stands further inside.
bool sniff(ByteView head_untrusted, std::string_view file_name) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  return as_text(head_untrusted).starts_with(kMagic) && !file_name.ends_with(".hotlap");
}

}  // namespace

extern constinit const ImporterSpec importer_nsys_sqlite{
    .name = "nsys_sqlite",
    .summary = "Nsight Systems, exported with `nsys export --type sqlite`.",
    .extensions = ".sqlite",
    .priority = 500,
    .sniff = sniff,
    .open_path = open_path};

}  // namespace hotlap
