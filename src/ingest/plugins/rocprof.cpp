// rocprofv3's JSON (rocprofiler-sdk-tool): kernels, copies, calls of HIP and marker ranges. A document may have
// gigabytes: only the members of its long lists are held, one at a time; what they refer to (names of kernels and
// operations) stands before them.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "ingest/importer.h"

namespace hotlap {
namespace {

constexpr std::size_t kObjectBytesMax = std::size_t{1} << 20;
constexpr std::size_t kDepthMax = 64;
constexpr std::size_t kKeyMax = 128;
constexpr std::size_t kNamesMax = 1'000'000;
constexpr std::size_t kAgentsMax = 4096;
constexpr std::int64_t kTimeMaxNs = INT64_MAX / 4;

// Walks over the document and hands out the objects that are elements of the lists wanted, with the list's name.
class ElementCutter {
 public:
  // Calls take(list, text, offset, is_whole).
  template <class F>
  void push(ByteView chunk_untrusted, F&& take) {
    for (const char c : as_text(chunk_untrusted)) {
      step(c, take);
      ++bytes_;
    }
  }
  template <class F>
  void finish(F&& take) {
    if (is_held_) take(std::string_view(list_), std::string_view(text_), offset_, false);
  }
  bool is_closed() const { return stack_.empty() && bytes_ > 0; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Level {
    bool is_list = false;
    std::string key;  // under which it stands; empty: an element of a list
  };

  static bool is_wanted(std::string_view list) {
    constexpr std::array<std::string_view, 12> kLists{
        "agents",     "kernel_symbols", "buffer_records", "kernel_dispatch", "hip_api",          "hsa_api",
        "marker_api", "rccl_api",       "memory_copy",    "hip_runtime_api", "hip_compiler_api", "metadata"};
    return std::ranges::find(kLists, list) != kLists.end();
  }

  template <class F>
  void step(char c, F& take) {
    if (is_held_ && text_.size() <= kObjectBytesMax) text_ += c;
    if (is_in_string_) return in_string(c);
    switch (c) {
      case '"':
        is_in_string_ = true;
        string_.clear();
        return;
      case ':': key_ = string_; return;
      case ',': key_.clear(); return;
      case '{':
      case '[': return open(c);
      case '}':
      case ']': return close(c, take);
      default: return;
    }
  }
  void in_string(char c) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      is_in_string_ = false;
      return;
    }
    if (string_.size() < kKeyMax) string_ += c;
  }
  void open(char c) {
    const bool is_element = c == '{' && !stack_.empty() && stack_.back().is_list && is_wanted(stack_.back().key);
    // The one list of operations' names is an object with lists inside: "strings".
    const bool is_strings = c == '{' && key_ == "strings" && stack_.size() == 3;
    if (!is_held_ && (is_element || is_strings)) {
      is_held_ = true;
      held_depth_ = stack_.size();
      list_ = is_strings ? "strings" : stack_.back().key;
      offset_ = static_cast<std::int64_t>(bytes_);
      text_ = "{";
    }
    if (stack_.size() < kDepthMax) {
      stack_.push_back({.is_list = c == '[', .key = key_});
    } else {
      ++beyond_;
    }
    key_.clear();
  }
  template <class F>
  void close(char c, F& take) {
    if (beyond_ > 0) {
      --beyond_;
      return;
    }
    if (stack_.empty()) return;
    stack_.pop_back();
    key_.clear();
    if (!is_held_ || stack_.size() != held_depth_) return;
    is_held_ = false;
    take(std::string_view(list_), std::string_view(text_), offset_, c == '}' && text_.size() <= kObjectBytesMax);
  }

  std::vector<Level> stack_;
  std::string key_;
  std::string string_;
  std::string list_;
  std::string text_;
  std::int64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t beyond_ = 0;
  std::size_t held_depth_ = 0;
  bool is_held_ = false;
  bool is_in_string_ = false;
  bool is_escaped_ = false;
};

class RocprofImporter final : public StreamImporter {
 public:
  explicit RocprofImporter(ImportSink& out) : out_(out) {}

  Result<void> push(ByteView chunk_untrusted) override {
    cutter_.push(chunk_untrusted, [&](auto... element) { take(element...); });
    return {};
  }
  Result<ImportStats> finish() override {
    cutter_.finish([&](auto... element) { take(element...); });
    if (!cutter_.is_closed()) {
      out_.count_loss("ingest.input_truncated", 1, static_cast<std::int64_t>(cutter_.bytes()));
    }
    // Of the machine's monotonic clock, as all times of ROCm.
    out_.clock({.offset_ns = 0, .uncertainty_ns = -1, .is_absolute = false});
    return ImportStats{.bytes = cutter_.bytes(), .events = events_};
  }

 private:
  void take(std::string_view list, std::string_view text_untrusted, std::int64_t offset, bool is_whole) {
    const auto document = is_whole ? JsonDocument::parse(text_untrusted) : Error{ErrorCode::kCorrupt, {}};
    if (!document.ok()) return out_.count_loss("ingest.events_dropped", 1, offset);
    const JsonValue root = document->root();
    if (list == "agents") return take_agent(root);
    if (list == "kernel_symbols") return take_symbol(root);
    if (list == "strings") return take_strings(root);
    if (!take_record(list, root)) out_.count_loss("ingest.events_dropped", 1, offset);
  }

  void take_agent(const JsonValue& agent) {
    const auto handle = agent["id"]["handle"].integer();
    if (!handle || agents_.size() == kAgentsMax || agent["type"].integer() != 2) return;  // 2: a GPU
    const std::size_t index = agents_.size();
    agents_[*handle] = out_.process({.label = format("amd{}", index)});
    if (const auto name = agent["product_name"].text())
      out_.attribute(format("amd{}.name", index), strip_control(*name));
  }
  void take_symbol(const JsonValue& symbol) {
    const auto id = symbol["kernel_id"].integer();
    auto name = symbol["truncated_kernel_name"].text();
    if (const auto whole = symbol["formatted_kernel_name"].text()) name = whole;
    if (id && name && !name->empty() && kernels_.size() < kNamesMax) kernels_[*id] = out_.name(strip_control(*name));
  }
  // "buffer_records": [{"kind": "HIP_RUNTIME_API", "operations": […]}, …], by number.
  void take_strings(const JsonValue& strings) {
    for (const JsonValue& kind : strings["buffer_records"].items()) {
      std::vector<std::string> operations;
      for (const JsonValue& operation : kind["operations"].items()) operations.push_back(operation.text().value_or(""));
      operations_.push_back(std::move(operations));
    }
  }

  bool take_record(std::string_view list, const JsonValue& record) {
    const auto start = record["start_timestamp"].integer();
    const auto end = record["end_timestamp"].integer();
    if (!start || *start < 0 || *start > kTimeMaxNs) return false;
    const bool has_end = end && *end >= *start && *end <= kTimeMaxNs;
    if (!has_end) out_.count_loss("ingest.durations_invalid", 1, 0);
    Span span{.start_ns = *start,
              .duration_ns = has_end ? *end - *start : -1,
              .value_a = record["correlation_id"]["internal"].integer().value_or(-1)};
    if (list == "kernel_dispatch") {
      span.kind = SpanKind::kKernel;
      const JsonValue dispatch = record["dispatch_info"];
      span.process = agent_of(dispatch["agent_id"]["handle"]);
      span.thread = narrow(dispatch["queue_id"]["handle"]);
      const auto found = kernels_.find(dispatch["kernel_id"].integer().value_or(-1));
      if (found != kernels_.end()) span.name = found->second;
    } else if (list == "memory_copy") {
      span.kind = SpanKind::kTransfer;
      span.process = agent_of(record["dst_agent_id"]["handle"]);
      if (span.process == 0) span.process = agent_of(record["src_agent_id"]["handle"]);
      span.value_b = record["bytes"].integer().value_or(-1);
      span.name = out_.name(copy_name(operation_of(record)));
    } else {
      span.kind = list == "marker_api" ? SpanKind::kUser : list == "rccl_api" ? SpanKind::kUser : SpanKind::kRuntime;
      span.process = main_slot();
      span.thread = narrow(record["thread_id"]);
      const std::string operation = operation_of(record);
      if (!operation.empty()) span.name = out_.name(operation);
    }
    ++events_;
    out_.span(span);
    return true;
  }

  std::string operation_of(const JsonValue& record) const {
    const auto kind = record["kind"].integer();
    const auto operation = record["operation"].integer();
    if (!kind || !operation || *kind < 0 || *operation < 0) return {};
    if (static_cast<std::size_t>(*kind) >= operations_.size()) return {};
    const auto& operations = operations_[static_cast<std::size_t>(*kind)];
    if (static_cast<std::size_t>(*operation) >= operations.size()) return {};
    return strip_control(operations[static_cast<std::size_t>(*operation)]);
  }
  // "MEMORY_COPY_HOST_TO_DEVICE" as other profilers name it.
  static std::string copy_name(const std::string& operation) {
    if (operation.ends_with("HOST_TO_DEVICE")) return "Memcpy HtoD";
    if (operation.ends_with("DEVICE_TO_HOST")) return "Memcpy DtoH";
    if (operation.ends_with("DEVICE_TO_DEVICE")) return "Memcpy DtoD";
    if (operation.ends_with("HOST_TO_HOST")) return "Memcpy HtoH";
    return "Memcpy";
  }

  std::uint32_t agent_of(const JsonValue& handle) const {
    const auto found = agents_.find(handle.integer().value_or(-1));
    return found == agents_.end() ? 0 : found->second;
  }
  std::uint32_t main_slot() {
    if (main_ == 0) main_ = out_.process({.role = ProcessRole::kMain});
    return main_;
  }
  static std::uint32_t narrow(const JsonValue& number) {
    const auto value = number.integer();
    return value && *value >= 0 && *value <= UINT32_MAX ? static_cast<std::uint32_t>(*value) : 0;
  }

  ImportSink& out_;
  ElementCutter cutter_;
  std::map<std::int64_t, std::uint32_t> agents_;
  std::unordered_map<std::int64_t, std::uint32_t> kernels_;
  std::vector<std::vector<std::string>> operations_;
  std::uint32_t main_ = 0;
  std::uint64_t events_ = 0;
};

bool sniff(ByteView head_untrusted, std::string_view) {
  const std::string_view head = trim(as_text(head_untrusted));
  return head.starts_with('{') && trim(head.substr(1)).starts_with("\"rocprofiler-sdk-tool\"");
}

std::unique_ptr<StreamImporter> open_stream(ImportSink& out) { return std::make_unique<RocprofImporter>(out); }

}  // namespace

extern constinit const ImporterSpec importer_rocprof{.name = "rocprof",
                                                     .summary = "rocprofv3 --output-format json.",
                                                     .extensions = ".json",
                                                     .priority = 350,
                                                     .sniff = sniff,
                                                     .open_stream = open_stream};

}  // namespace hotlap
