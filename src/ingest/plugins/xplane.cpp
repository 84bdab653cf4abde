// XPlane protobuf of JAX, TensorFlow and PyTorch/XLA (*.xplane.pb): work on devices, threads of the host, steps. Read
// with a decoder of our own: the few fields that matter, whatever others there are. Of a file that is cut off what
// stands before the cut is read, down to the last whole event; names of its last plane stand behind and are lost.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/importer.h"
#include "ingest/named_processes.h"
#include "ingest/trace_assembler.h"
#include "model/trace_source.h"

namespace hotlap {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 30;
constexpr std::size_t kNameMax = 512;  // the text of an XLA operation is longer
constexpr std::size_t kPlanesMax = 1024;
constexpr std::size_t kFirstBytes = 64;
constexpr std::string_view kReplaced = "\xEF\xBF\xBD";           // U+FFFD, which no such file begins with
constexpr std::int64_t kUnixFromNs = 1'000'000'000'000'000'000;  // 2001; smaller times count from any moment
constexpr std::uint64_t kTimeMaxNs = UINT64_C(4'000'000'000'000'000'000);

// One field of a message: a number, or bytes.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  ByteView bytes;
};

// Calls take(field) for each; false when the message is cut off or is none. Of one that holds others and is cut off,
// the last is handed on as far as it goes.
template <class F>
bool read_message(ByteView message_untrusted, F take, bool takes_cut_off = false) {
  ByteReader reader(message_untrusted);
  while (reader.ok() && reader.remaining() > 0) {
    const std::uint64_t key = reader.varint();
    Field field{.number = key >> 3U, .value = 0, .bytes = {}};
    switch (key & 7U) {
      case 0: field.value = reader.varint(); break;
      case 1: field.value = reader.fixed<std::uint64_t>(); break;
      case 2: {
        const std::uint64_t length = reader.varint();
        if (length > reader.remaining()) {
          if (!reader.ok() || !takes_cut_off || field.number == 0) return false;
          field.bytes = reader.bytes(reader.remaining());
          take(field);
          return false;
        }
        field.bytes = reader.bytes(static_cast<std::size_t>(length));
        break;
      }
      case 5: field.value = reader.fixed<std::uint32_t>(); break;
      default: return false;  // groups: nobody writes them
    }
    if (!reader.ok() || field.number == 0) return false;
    take(field);
  }
  return reader.ok();
}

std::string text_of(ByteView bytes) { return strip_control(as_text(bytes).substr(0, kNameMax)); }

struct Line {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t start_ns = 0;
  std::vector<ByteView> events;
};

struct Plane {
  std::string name;
  std::vector<Line> lines;
  std::unordered_map<std::uint64_t, std::uint32_t> names;  // of kinds of events, at the sink
  std::unordered_map<std::uint64_t, std::string> texts;
  std::uint64_t step_statistic = 0;  // the number of "step_num" among the plane's statistics; 0: none
};

class XplaneImport {
 public:
  explicit XplaneImport(ImportSink& out) : out_(out) {}

  std::uint64_t run(ByteView space) {
    std::size_t planes = 0;
    end_ = space.data() + space.size();
    const bool is_sound = read_message(
        space,
        [&](const Field& field) {
          if (field.number == 1 && planes++ < kPlanesMax) read_plane(field.bytes);
          if (field.number == 4) out_.attribute("host", text_of(field.bytes));
        },
        true);
    if (!is_sound) {
      is_cut_off_ = true;
      out_.count_loss("ingest.input_truncated", 1, 0);
    }
    out_.attribute(kTraceProgramAttribute, kProgramOfXla);
    if (!is_clock_told_) out_.clock({});
    return events_;
  }
  bool is_cut_off() const { return is_cut_off_; }

 private:
  void drop() { out_.count_loss("ingest.events_dropped", 1, 0); }
  // What the file's end cuts off is counted once, there.
  void drop(ByteView message) {
    if (message.data() + message.size() != end_) drop();
  }

  void read_plane(ByteView message) {
    Plane plane;
    const bool is_sound = read_message(
        message,
        [&](const Field& field) {
          if (field.number == 2) plane.name = text_of(field.bytes);
          if (field.number == 3) read_line(field.bytes, plane);
          if (field.number == 4) read_kind(field.bytes, plane);
          if (field.number == 5) read_statistic(field.bytes, plane);
        },
        true);
    if (!is_sound) drop(message);
    const std::string device = xla_device_label(plane.name);
    const bool is_device = !device.empty();
    if (!is_device && !plane.name.starts_with("/host:CPU") && !plane.name.starts_with("/host:python")) {
      return;  // the task's environment, metadata
    }
    const std::uint32_t slot = is_device ? out_.process(ProcessInfo{.label = device}) : main_slot();
    // Of a GPU the lines of its streams hold what ran; those of XLA operations are made from them.
    const bool has_streams =
        std::ranges::any_of(plane.lines, [](const Line& line) { return line.name.starts_with("Stream"); });
    for (const Line& line : plane.lines) {
      SpanKind kind = SpanKind::kOperator;
      if (is_device) {
        const bool is_work = has_streams ? line.name.starts_with("Stream") : line.name == "XLA Ops";
        kind = line.name == "Steps" ? SpanKind::kStep : is_work ? SpanKind::kKernel : SpanKind::kDeviceAnnotation;
      }
      for (const ByteView event : line.events) give(event, line, plane, slot, kind);
    }
  }

  std::uint32_t main_slot() {
    if (main_ == 0) main_ = out_.process({.role = ProcessRole::kMain});
    return main_;
  }

  void read_line(ByteView message, Plane& plane) {
    Line line;
    const bool is_sound = read_message(message, [&](const Field& field) {
      if (field.number == 1) line.id = field.value;
      if (field.number == 2 || (field.number == 11 && line.name.empty())) line.name = text_of(field.bytes);
      if (field.number == 3) line.start_ns = field.value;
      if (field.number == 4) line.events.push_back(field.bytes);
    });
    if (!is_sound) drop(message);
    plane.lines.push_back(std::move(line));
  }

  // An entry of the map from a kind's number to its description.
  void read_kind(ByteView message, Plane& plane) {
    std::uint64_t id = 0;
    std::string name;
    std::string display_name;
    const bool is_sound = read_message(message, [&](const Field& entry) {
      if (entry.number == 1) id = entry.value;
      if (entry.number != 2) return;
      (void)read_message(entry.bytes, [&](const Field& field) {
        if (field.number == 2) name = text_of(field.bytes);
        if (field.number == 4) display_name = text_of(field.bytes);
      });
    });
    if (!is_sound) drop(message);
    plane.texts[id] = display_name.empty() ? name : display_name;
  }

  // Of a kind of statistic: only its name matters here.
  static void read_statistic(ByteView message, Plane& plane) {
    std::uint64_t id = 0;
    bool is_step = false;
    (void)read_message(message, [&](const Field& entry) {
      if (entry.number == 1) id = entry.value;
      if (entry.number != 2) return;
      (void)read_message(entry.bytes, [&](const Field& field) {
        if (field.number == 2) is_step = as_text(field.bytes) == "step_num";
      });
    });
    if (is_step) plane.step_statistic = id;
  }
  // The number of the step that an event tells; -1: none.
  static std::int64_t step_in(ByteView statistic, const Plane& plane) {
    std::uint64_t id = 0;
    std::uint64_t value = UINT64_MAX;
    const bool is_sound = read_message(statistic, [&](const Field& field) {
      if (field.number == 1) id = field.value;
      if (field.number == 3 || field.number == 4) value = field.value;  // without and with a sign
    });
    return is_sound && id == plane.step_statistic && value <= INT64_MAX ? static_cast<std::int64_t>(value) : -1;
  }

  void give(ByteView message, const Line& line, Plane& plane, std::uint32_t slot, SpanKind kind) {
    std::uint64_t id = 0;
    std::uint64_t offset_ps = 0;
    std::uint64_t duration_ps = 0;
    std::int64_t step = -1;
    const bool is_sound = read_message(message, [&](const Field& field) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) offset_ps = field.value;
      if (field.number == 3) duration_ps = field.value;
      if (field.number == 4 && plane.step_statistic != 0 && step < 0) step = step_in(field.bytes, plane);
    });
    const std::uint64_t start_ns = line.start_ns + offset_ps / 1000;
    if (!is_sound || line.start_ns > kTimeMaxNs || start_ns > kTimeMaxNs) return drop();
    if (!is_clock_told_) {
      is_clock_told_ = true;
      const bool is_unix = line.start_ns >= static_cast<std::uint64_t>(kUnixFromNs);
      out_.clock({.offset_ns = 0, .uncertainty_ns = is_unix ? 0 : -1, .is_absolute = is_unix});
    }
    ++events_;
    const std::string& text = plane.texts[id];
    Span span{.start_ns = static_cast<std::int64_t>(start_ns),
              .duration_ns = static_cast<std::int64_t>(std::min(duration_ps / 1000, kTimeMaxNs)),
              .kind = kind,
              .process = slot,
              .thread = static_cast<std::uint32_t>(line.id)};
    if (kind == SpanKind::kOperator || kind == SpanKind::kKernel) {
      // What waits for data, on the host ("IteratorGetNext") or on the device ("infeed.1"), is the host's.
      const bool is_wait = kind_of_label(text) == SpanKind::kDataWait;
      if (is_wait) span.kind = SpanKind::kDataWait;
      if (is_wait) span.process = main_slot();
      if (kind == SpanKind::kOperator) span.step = step;
    }
    if (span.kind == SpanKind::kKernel && (text.starts_with("Memcpy") || text.starts_with("Memset"))) {
      span.kind = SpanKind::kTransfer;
    }
    if (kind == SpanKind::kStep) {
      span.process = main_slot();
      span.thread = 0;
      span.step = parse_i64(text).value_or(-1);
      // Each device has its own line of steps: the first device's are the run's.
      if (steps_of_ == 0) steps_of_ = slot;
      if (steps_of_ != slot) span.kind = SpanKind::kDeviceAnnotation;
    }
    const auto known = plane.names.find(id);
    span.name = known != plane.names.end() ? known->second : (plane.names[id] = text.empty() ? 0 : out_.name(text));
    out_.span(span);
  }

  ImportSink& out_;
  const std::byte* end_ = nullptr;  // of the file
  std::uint64_t events_ = 0;
  std::uint32_t main_ = 0;
  std::uint32_t steps_of_ = 0;
  bool is_clock_told_ = false;
  bool is_cut_off_ = false;
};

Result<ImportStats> open_path(const std::filesystem::path& path, ImportSink& out) {
  HOTLAP_TRY_ASSIGN(const std::string content, read_regular_file(path, kFileBytesMax));
  if (content.substr(0, kFirstBytes).find(kReplaced) != std::string::npos) {
    return Error{
        ErrorCode::kCorrupt,
        format("{}: was saved as text: bytes that are no text have been replaced, and nothing can be read; copy "
               "it as a binary file",
               path.filename().string())};
  }
  XplaneImport import(out);
  const std::uint64_t events = import.run(as_bytes(content));
  if (events == 0 && import.is_cut_off()) {
    return Error{ErrorCode::kCorrupt, format("{}: is damaged or cut off before its first whole event; copy it again",
                                             path.filename().string())};
  }
  if (events == 0) {
    return Error{ErrorCode::kInvalidInput,
                 format("{}: no event of a device or of the host in it; an XPlane file is written by jax.profiler or "
                        "tf.profiler as <host>.xplane.pb",
                        path.filename().string())};
  }
  return ImportStats{.bytes = content.size(), .events = events};
}

// Protobuf has no magic: the name, and that the first field is a plane.
bool sniff(ByteView head_untrusted, std::string_view file_name) {
  return file_name.ends_with(".xplane.pb") && !head_untrusted.empty() && head_untrusted[0] == std::byte{0x0A};
}

}  // namespace

extern constinit const ImporterSpec importer_xplane{.name = "xplane",
                                                    .summary = "XPlane protobuf of JAX, TensorFlow and PyTorch/XLA.",
                                                    .extensions = ".xplane.pb",
                                                    .priority = 510,
                                                    .sniff = sniff,
                                                    .open_path = open_path};

}  // namespace hotlap
