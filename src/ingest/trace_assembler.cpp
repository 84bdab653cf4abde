#include "ingest/trace_assembler.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "model/trace_source.h"

namespace hotlap {
namespace {

constexpr std::int64_t kYearNs = 31'557'600'000'000'000;
constexpr std::int64_t kTimeMaxNs = 90 * kYearNs;   // from 0: Unix time and every clock that counts from a start
constexpr std::int64_t kDurationMaxNs = kYearNs;    // no operation takes longer
constexpr std::int64_t kUnixFromNs = 30 * kYearNs;  // a file time beyond is Unix time
constexpr std::int64_t kHourNs = 3'600'000'000'000;
constexpr std::size_t kHeldBackMax = 1024;
constexpr std::int64_t kSpreadMaxNs = kYearNs;               // of a document's times, either way
constexpr std::size_t kNameTextMax = std::size_t{16} << 10;  // of one name; templates of C++ come near
constexpr std::size_t kMembersMax = 16;
constexpr std::uint32_t kMadeThread = 0x8000'0000;  // threads whose number is none of the system's
constexpr std::size_t kOpenBytesOfKey = 512;
constexpr std::size_t kProcessNamesMax = 4096;
constexpr std::size_t kProcessNameMax = 256;
constexpr std::size_t kStageThreadsMax = 4096;
constexpr std::size_t kThreadTextMax = 63;  // of a lane's key

bool is_device_source(auto source) {
  using Source = decltype(source);
  return source == Source::kKernel || source == Source::kCopy || source == Source::kDeviceAnnotation ||
         source == Source::kStep;
}

SpanKind kind_of_meaning(NameMeaning meaning) {
  switch (meaning) {
    case NameMeaning::kStep: return SpanKind::kStep;
    case NameMeaning::kDataWait: return SpanKind::kDataWait;
    case NameMeaning::kForward: return SpanKind::kForward;
    case NameMeaning::kBackward: return SpanKind::kBackward;
    case NameMeaning::kOptimizer: return SpanKind::kOptimizer;
    default: return SpanKind::kUser;
  }
}

std::int64_t or_missing(std::int64_t argument) {
  return argument == kNoArgument ? -1 : std::max<std::int64_t>(argument, -1);
}

}  // namespace

TraceAssembler::Source TraceAssembler::source_of(std::string_view category) {
  switch (category.size()) {
    case 5:
      if (category == "Trace") return Source::kSkipped;
      break;
    case 6:
      if (category == "cpu_op") return Source::kOperator;
      if (category == "kernel" || category == "Kernel") return Source::kKernel;
      if (category == "Memcpy" || category == "Memset") return Source::kCopy;
      break;
    case 7:
      if (category == "Runtime") return Source::kRuntime;
      break;
    case 8:
      if (category == "overhead") return Source::kAnnotation;
      break;
    case 9:
      if (category == "cuda_sync") return Source::kDeviceAnnotation;
      break;
    case 10:
      if (category == "gpu_memcpy" || category == "gpu_memset") return Source::kCopy;
      break;
    case 11:
      if (category == "cuda_driver") return Source::kRuntime;
      break;
    case 15:
      if (category == "python_function") return Source::kFunction;
      if (category == "user_annotation") return Source::kAnnotation;
      break;
    case 19:
      if (category == "gpu_user_annotation" || category == "cuda_profiler_range") return Source::kDeviceAnnotation;
      break;
    default: break;
  }
  // Of every vendor: cuda_, hip_, xpu_, mtia_, privateuse1_.
  return category.ends_with("_runtime") || category.ends_with("_driver") ? Source::kRuntime : Source::kOperator;
}

TraceAssembler::Source TraceAssembler::source_of(const TraceEvent& event) const {
  if (!event.category.empty()) return source_of(event.category);
  if (!named_.empty()) {
    switch (named_.work_of(event.process, event.thread)) {
      case NamedProcesses::Work::kUnknown: break;
      case NamedProcesses::Work::kHost: return Source::kHostOfXla;
      case NamedProcesses::Work::kDevice: {
        const std::string_view name = event.name.raw;
        return name.starts_with("Memcpy") || name.starts_with("Memset") ? Source::kCopy : Source::kKernel;
      }
      case NamedProcesses::Work::kSteps: return Source::kStep;
      case NamedProcesses::Work::kAbout: return Source::kDeviceAnnotation;
      case NamedProcesses::Work::kCall: return Source::kRuntime;
      case NamedProcesses::Work::kRange: return Source::kAnnotation;
    }
  }
  return event.process == "CUDA functions" ? Source::kKernel : Source::kOperator;  // the legacy profiler's two
}

void TraceAssembler::count(std::string_view counter, std::uint64_t n, std::int64_t offset) {
  for (Count& one : counts_) {
    if (one.counter == counter) {
      one.n += n;
      return;
    }
  }
  counts_.push_back({counter, n, offset});
}

const TraceAssembler::Name& TraceAssembler::name_of(const TraceEvent& event, std::int64_t offset) {
  const std::string_view raw = event.name.raw.substr(0, kNameTextMax);
  const TextTable::Place place = name_table_.place_of(raw);
  if (place.index == TextTable::kNone) {
    count("ingest.names_dropped", 1, offset);
    return nameless_;
  }
  if (place.is_new) {
    text_.clear();
    const bool is_sound = json::append_clean({.raw = raw}, text_);
    names_.push_back({.id = out_.name(text_),
                      .meaning = meaning_of_name(text_),
                      .label_kind = kind_of_label(text_),
                      .is_repaired = !is_sound});
  }
  const Name& name = names_[place.index];
  if (event.is_repaired) {
    count("ingest.events_repaired", 1, offset);
  } else if ((name.is_repaired || event.name.raw.size() > kNameTextMax) && !event.damage.has_bad_text) {
    count("ingest.texts_repaired", 1, offset);
  }
  return name;
}

std::uint32_t TraceAssembler::detail_of(const TraceEvent& event, std::int64_t offset) {
  if (event.details.empty()) return 0;
  const std::uint32_t id = details_.id_of(event.details);
  if (id != TraceDetails::kRefused) return id;
  count("ingest.details_dropped", 1, offset);
  return 0;
}

std::uint32_t TraceAssembler::process_of(std::string_view text, bool is_device) {
  const TextTable::Place place = process_table_.place_of(text, is_device ? "d" : "");
  if (place.index == TextTable::kNone) return 0;
  if (place.is_new) {
    Process process{.info = {}, .text = std::string(text.substr(0, kProcessNameMax)), .is_device = is_device};
    const auto number = json::whole_number(text);
    if (is_device) {
      process.info.label = number ? format("gpu{}", *number) : to_valid_utf8(text.substr(0, 64));
      if (const auto label = named_.device_label(text); !label.empty()) process.info.label = to_valid_utf8(label);
    } else if (number && *number > 0 && *number <= INT32_MAX) {
      process.info.pid = static_cast<std::int32_t>(*number);
    } else {
      process.info.label = to_valid_utf8(text.substr(0, 64));
    }
    process.info.slot = out_.process(process.info);
    processes_.push_back(std::move(process));
  }
  return place.index + 1;
}

std::uint32_t TraceAssembler::lane_of(const TraceEvent& event, bool is_device) {
  // A device's lanes are told apart by what the arguments say of them: Kineto has them right where pid and tid vary.
  const bool has_place = is_device && event.device != kNoArgument && event.stream != kNoArgument;
  std::array<char, 24> device_text{};
  std::array<char, 24> stream_text{};
  std::string_view process = event.process;
  std::string_view thread = event.thread;
  if (has_place) {
    const auto text_of = [](std::int64_t value, std::array<char, 24>& buffer) {
      char* const end = buffer.data() + buffer.size();
      char* at = end;
      auto left = static_cast<std::uint64_t>(value < 0 ? -value : value);
      do {
        *--at = static_cast<char>('0' + left % 10);
        left /= 10;
      } while (left != 0);
      if (value < 0) *--at = '-';
      return std::string_view(at, static_cast<std::size_t>(end - at));
    };
    process = text_of(event.device, device_text);
    thread = text_of(event.stream, stream_text);
  }
  std::array<char, 1 + kThreadTextMax> key{};  // the sort of lane stands in front of the thread
  key[0] = is_device ? 'd' : 'c';
  const std::size_t n = std::min(thread.size(), key.size() - 1);
  std::copy_n(thread.data(), n, key.data() + 1);
  const TextTable::Place place = lane_table_.place_of(process, {key.data(), n + 1});
  if (place.index == TextTable::kNone) return TextTable::kNone;
  if (place.is_new) {
    Lane lane;
    lane.slot = process_of(process, is_device);
    std::string_view number = thread;
    if (number.starts_with("stream ")) number.remove_prefix(7);
    const auto id = json::whole_number(number);
    lane.thread =
        id && *id >= 0 && *id < std::int64_t{kMadeThread} ? static_cast<std::uint32_t>(*id) : kMadeThread + place.index;
    lanes_.push_back(std::move(lane));
  }
  return place.index;
}

bool TraceAssembler::is_time(const TraceEvent& event, std::int64_t offset) {
  bool is_good = event.has_start && event.start_ns >= -kTimeMaxNs && event.start_ns <= kTimeMaxNs;
  if (is_settled_) {
    is_good = is_good && event.start_ns >= time_from_ns_ && event.start_ns <= time_to_ns_ &&
              (event.start_ns != 0 || has_zero_);
  }
  if (!is_good) count("ingest.times_invalid", 1, offset);
  return is_good;
}

// From the first spans of a document: what lies about where most of them are is its time.
void TraceAssembler::settle_times() {
  if (is_settled_ || held_.empty()) return;
  std::vector<std::int64_t> starts_ns;
  starts_ns.reserve(held_.size());
  for (const Held& held : held_) starts_ns.push_back(held.span.start_ns);
  const auto middle = starts_ns.begin() + static_cast<std::ptrdiff_t>(starts_ns.size() / 2);
  std::nth_element(starts_ns.begin(), middle, starts_ns.end());
  is_settled_ = true;
  time_from_ns_ = *middle - kSpreadMaxNs;
  time_to_ns_ = *middle + kSpreadMaxNs;
  // Where everything else is hours away, 0 stands for "not known".
  std::int64_t least_ns = INT64_MAX;
  for (const Held& held : held_) {
    const std::int64_t start_ns = held.span.start_ns;
    if (start_ns != 0 && start_ns >= time_from_ns_) least_ns = std::min(least_ns, start_ns);
  }
  has_zero_ = least_ns == INT64_MAX || least_ns < kHourNs;
  for (const Held& held : held_) {
    const std::int64_t start_ns = held.span.start_ns;
    if (start_ns < time_from_ns_ || start_ns > time_to_ns_ || (start_ns == 0 && !has_zero_)) {
      count("ingest.times_invalid", 1, held.offset);
      continue;
    }
    first_ns_ = std::min(first_ns_, start_ns);
    out_.span(held.span);
  }
  held_.clear();
}

void TraceAssembler::on_document() {
  settle_times();
  is_settled_ = false;
  launches_ = {};  // another process counts its own launches
}

std::uint64_t TraceAssembler::events_unread() const {
  std::uint64_t sum = 0;
  for (const Count& one : counts_) {
    if (one.counter == "ingest.events_dropped" || one.counter == "ingest.times_invalid") sum += one.n;
  }
  return sum;
}

std::int64_t TraceAssembler::duration_of(const TraceEvent& event, std::int64_t offset) {
  if (event.has_duration && event.duration_ns >= 0 && event.duration_ns <= kDurationMaxNs) return event.duration_ns;
  count("ingest.durations_invalid", 1, offset);
  return -1;
}

void TraceAssembler::on_event(const TraceEvent& event, std::int64_t offset) {
  if (event.arguments_skipped > 0 && event.phase != 'C') {
    if (arguments_skipped_ == 0) first_skipped_offset_ = offset;
    arguments_skipped_ += event.arguments_skipped;
  }
  switch (event.phase) {
    case 'X': ++events_; return on_complete(event, offset);
    case 'B': ++events_; return on_begin(event, offset);
    case 'E': ++events_; return on_end(event, offset);
    case 'b':
    case 'S': ++events_; return on_async(event, true, offset);
    case 'e':
    case 'F': ++events_; return on_async(event, false, offset);
    case 'i':
    case 'I':
    case 'R':
    case 'n': ++events_; return on_instant(event, offset);
    case 'C': ++events_; return on_counter(event, offset);
    case 'M':
      ++events_;
      ++metadata_;
      return on_metadata(event);
    case 0:
      // "{}" ends many a list.
      if (event.name.raw.empty() && event.category.empty() && !event.has_start) return;
      return count("ingest.events_dropped", 1, offset);
    default: ++events_; return count("ingest.events_skipped", 1, offset);
  }
}

void TraceAssembler::give(Span span, Source source, const Name& name, std::uint32_t process, std::int64_t offset) {
  switch (source) {
    case Source::kKernel: span.kind = SpanKind::kKernel; break;
    case Source::kCopy: span.kind = SpanKind::kTransfer; break;
    case Source::kRuntime: span.kind = SpanKind::kRuntime; break;
    case Source::kFunction: span.kind = SpanKind::kFunction; break;
    case Source::kDeviceAnnotation: span.kind = SpanKind::kDeviceAnnotation; break;
    case Source::kAnnotation:
    case Source::kOperator:
      span.kind = kind_of_meaning(name.meaning.meaning);
      if (span.kind == SpanKind::kUser) {
        span.kind = source == Source::kOperator ? SpanKind::kOperator : name.label_kind;
      }
      if (span.kind == SpanKind::kStep && name.meaning.step >= 0) span.step = name.meaning.step;
      if (span.kind != SpanKind::kOperator) span.value_a = span.value_b = -1;
      break;
    case Source::kHostOfXla:
      span.kind = name.label_kind == SpanKind::kUser ? SpanKind::kOperator : name.label_kind;
      span.value_a = span.value_b = -1;
      break;
    case Source::kStep: span.kind = SpanKind::kStep; break;
    case Source::kSkipped: return;
  }
  if (process > 0) {
    Process& counted = processes_[process - 1];
    ++counted.spans;
    if (span.kind == SpanKind::kStep) ++counted.steps;
  }
  span.process = process == 0 ? 0 : processes_[process - 1].info.slot;
  span.name = name.id;
  if (!is_settled_) {
    held_.push_back({span, process, offset});
    if (held_.size() >= kHeldBackMax) settle_times();
    return;
  }
  first_ns_ = std::min(first_ns_, span.start_ns);
  out_.span(span);
}

void TraceAssembler::on_complete(const TraceEvent& event, std::int64_t offset) {
  const Source source = source_of(event);
  if (source == Source::kSkipped) return count("ingest.events_skipped", 1, offset);
  if (!is_time(event, offset)) return;
  if (source == Source::kStep) return on_step(event, offset);
  if (source == Source::kKernel && named_.is_of_xla() && event.name.raw.starts_with("infeed")) {
    // The device's part of a wait for data.
    const Span wait{.start_ns = event.start_ns, .duration_ns = duration_of(event, offset)};
    return give(wait, Source::kHostOfXla, name_of(event, offset), host_of_xla(event), offset);
  }
  const std::uint32_t lane_index = lane_of(event, is_device_source(source));
  const Lane& lane = lane_index == TextTable::kNone ? refused_lane_ : lanes_[lane_index];
  Span span{.start_ns = event.start_ns, .duration_ns = duration_of(event, offset)};
  span.thread = lane.thread;
  span.step = or_missing(event.step);
  span.detail = detail_of(event, offset);
  switch (source) {
    case Source::kOperator:
    case Source::kAnnotation:
      span.value_a = or_missing(event.external_id);
      span.value_b = or_missing(event.sequence);
      break;
    case Source::kFunction:
      span.value_a = or_missing(event.function_id);
      span.value_b = or_missing(event.function_caller);
      break;
    case Source::kCopy:
      span.value_a = or_missing(event.correlation);
      span.value_b = or_missing(event.bytes);
      break;
    default:
      span.value_a = or_missing(event.correlation);
      span.value_b = or_missing(event.external_id);
      break;
  }
  check_launch(event, source, offset);
  give(span, source, name_of(event, offset), lane.slot, offset);
}

// Each device has its own line of steps: the first device's are the run's.
void TraceAssembler::on_step(const TraceEvent& event, std::int64_t offset) {
  const Name& name = name_of(event, offset);
  Span span{.start_ns = event.start_ns, .duration_ns = duration_of(event, offset)};
  span.step = parse_i64(event.name.raw).value_or(-1);
  if (steps_of_.empty()) steps_of_ = event.process;
  if (event.process == steps_of_) return give(span, Source::kStep, name, host_of_xla(event), offset);
  const std::uint32_t lane = lane_of(event, true);
  give(span, Source::kDeviceAnnotation, name, lane == TextTable::kNone ? 0 : lanes_[lane].slot, offset);
}

// The process that all devices have in common.
std::uint32_t TraceAssembler::host_of_xla(const TraceEvent& event) {
  return process_of(named_.host().empty() ? event.process : std::string_view(named_.host()), false);
}

void TraceAssembler::check_launch(const TraceEvent& event, Source source, std::int64_t offset) {
  const bool is_launch = source == Source::kRuntime;
  if (event.correlation == kNoArgument || (!is_launch && source != Source::kKernel && source != Source::kCopy)) return;
  if (launches_.is_reversed(event.correlation, event.start_ns, is_launch)) {
    count("ingest.kernels_before_launch", 1, offset);
  }
}

void TraceAssembler::on_begin(const TraceEvent& event, std::int64_t offset) {
  if (!is_time(event, offset)) return;
  Source source = source_of(event);
  if (source == Source::kStep) source = Source::kDeviceAnnotation;  // such lines have whole events
  const std::uint32_t lane_index = lane_of(event, is_device_source(source));
  if (lane_index == TextTable::kNone) return count("ingest.events_dropped", 1, offset);
  const Name& name = name_of(event, offset);
  Lane& lane = lanes_[lane_index];
  if (lane.open.size() >= kOpenMax) {
    // A begin that never ends is at the bottom.
    count("ingest.begins_unmatched", 1, lane.open.front().offset);
    give_open(lane.open.front(), lane, -1);
    lane.open.erase(lane.open.begin());
  }
  const auto name_index = &name == &nameless_ ? TextTable::kNone : static_cast<std::uint32_t>(&name - names_.data());
  lane.open.push_back({event.start_ns, name_index, source, or_missing(event.step), offset});
}

void TraceAssembler::give_open(const Open& open, const Lane& lane, std::int64_t duration_ns) {
  Span span{.start_ns = open.start_ns, .duration_ns = duration_ns, .thread = lane.thread};
  span.step = open.step;
  give(span, open.source, open.name == TextTable::kNone ? nameless_ : names_[open.name], lane.slot, open.offset);
}

void TraceAssembler::on_end(const TraceEvent& event, std::int64_t offset) {
  if (!is_time(event, offset)) return;
  const std::uint32_t lane_index = lane_of(event, is_device_source(source_of(event)));
  if (lane_index == TextTable::kNone) return count("ingest.events_dropped", 1, offset);
  Lane& lane = lanes_[lane_index];
  // An end closes the innermost begin; one with a name that stands further out closes that, and what is inside it has
  // no end of its own.
  std::size_t depth = lane.open.size();
  if (!event.name.raw.empty() && depth > 0) {
    const TextTable::Place place = name_table_.place_of(event.name.raw.substr(0, kNameTextMax));
    if (place.is_new) names_.push_back({.id = out_.name(to_valid_utf8(event.name.raw.substr(0, kNameTextMax)))});
    const auto found =
        std::find_if(lane.open.rbegin(), lane.open.rend(), [&](const Open& open) { return open.name == place.index; });
    if (found != lane.open.rend()) depth = static_cast<std::size_t>(lane.open.rend() - found);
  }
  if (depth == 0) return count("ingest.ends_unmatched", 1, offset);
  while (lane.open.size() > depth) {
    count("ingest.begins_unmatched", 1, lane.open.back().offset);
    give_open(lane.open.back(), lane, -1);
    lane.open.pop_back();
  }
  const Open open = lane.open.back();
  lane.open.pop_back();
  std::int64_t duration_ns = event.start_ns - open.start_ns;
  if (duration_ns < 0 || duration_ns > kDurationMaxNs) {
    count("ingest.durations_invalid", 1, offset);
    duration_ns = -1;
  }
  give_open(open, lane, duration_ns);
}

void TraceAssembler::on_async(const TraceEvent& event, bool is_begin, std::int64_t offset) {
  if (!is_time(event, offset)) return;
  std::string key(event.category.substr(0, kOpenBytesOfKey));
  key += '\0';
  key += event.id.substr(0, kOpenBytesOfKey);
  key += '\0';
  key += event.name.raw.substr(0, kOpenBytesOfKey);
  if (is_begin) {
    const std::uint32_t lane = lane_of(event, false);
    if (async_open_ >= kAsyncMax || lane == TextTable::kNone) return count("ingest.events_dropped", 1, offset);
    const Name& name = name_of(event, offset);
    const auto index = &name == &nameless_ ? TextTable::kNone : static_cast<std::uint32_t>(&name - names_.data());
    async_[std::move(key)].push_back(
        {{event.start_ns, index, Source::kAnnotation, or_missing(event.step), offset}, lane});
    ++async_open_;
    return;
  }
  const auto found = async_.find(key);
  if (found == async_.end()) return count("ingest.ends_unmatched", 1, offset);
  const Async begun = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) async_.erase(found);
  --async_open_;
  std::int64_t duration_ns = event.start_ns - begun.open.start_ns;
  if (duration_ns < 0 || duration_ns > kDurationMaxNs) {
    count("ingest.durations_invalid", 1, offset);
    duration_ns = -1;
  }
  give_open(begun.open, lanes_[begun.lane], duration_ns);
}

void TraceAssembler::on_instant(const TraceEvent& event, std::int64_t offset) {
  if (!is_time(event, offset)) return;
  const Name& name = name_of(event, offset);
  if (name.meaning.meaning == NameMeaning::kMemory) {
    out_.at(offset);
    return series_.add_memory(event);
  }
  const std::uint32_t lane_index = lane_of(event, false);
  const Lane& lane = lane_index == TextTable::kNone ? refused_lane_ : lanes_[lane_index];
  give({.start_ns = event.start_ns, .duration_ns = 0, .thread = lane.thread}, Source::kAnnotation, name, lane.slot,
       offset);
}

void TraceAssembler::on_counter(const TraceEvent& event, std::int64_t offset) {
  if (!is_time(event, offset)) return;
  out_.at(offset);
  const TraceSeries::Lost lost = series_.add_counter(event);
  if (lost.values_unreadable > 0) count("ingest.values_unreadable", lost.values_unreadable, offset);
  if (lost.series_refused > 0) count("record.series_refused", lost.series_refused, offset);
}

void TraceAssembler::keep_stage(const TraceEvent& event) {
  const auto stage = pipeline_stage_in_name(event.argument_name.raw.substr(0, kProcessNameMax));
  if (!stage || stages_.size() >= kStageThreadsMax) return;
  stages_[{std::string(event.process.substr(0, kProcessNameMax)),
           std::string(event.thread.substr(0, kThreadTextMax))}] = *stage;
}

void TraceAssembler::on_metadata(const TraceEvent& event) {
  if (event.argument_name.raw.empty()) return;
  if (event.name.raw == "thread_name") {
    keep_stage(event);
    return named_.on_thread(event.process, event.thread, event.argument_name.raw);
  }
  if (event.name.raw != "process_name") return;
  named_.on_process(event.process, event.argument_name.raw);
  // Kineto names devices like processes: the name is kept aside until it is known whether anything ran there.
  if (process_names_.size() >= kProcessNamesMax) return;
  std::string name;
  (void)json::append_clean({.raw = event.argument_name.raw.substr(0, kProcessNameMax)}, name);
  process_names_[std::string(event.process.substr(0, kProcessNameMax))] = std::move(name);
}

void TraceAssembler::on_member(std::string_view key, std::string_view value) {
  if (members_.size() < kMembersMax) members_.emplace_back(key.substr(0, 64));
  if (key == "baseTimeNanoseconds") {
    base_ns_ = json::whole_number(value).value_or(0);
  } else if (key == "distributedInfo") {
    const Result<JsonDocument> parsed = JsonDocument::parse(value);
    if (!parsed.ok()) return;
    rank_ = parsed->root()["rank"].integer().value_or(-1);
    if (const auto world = parsed->root()["world_size"].integer())
      out_.attribute("trace.world_size", format("{}", *world));
    if (const auto backend = parsed->root()["backend"].text()) out_.attribute("trace.backend", *backend);
  } else if (key == "deviceProperties") {
    const Result<JsonDocument> parsed = JsonDocument::parse(value);
    if (!parsed.ok()) return;
    for (const JsonValue& device : parsed->root().items()) {
      const auto id = device["id"].integer();
      const auto name = device["name"].text();
      if (id && name) out_.attribute(format("gpu{}.name", *id), *name);
      if (const auto units = device["numSms"].integer(); id && units) {
        out_.attribute(format("gpu{}.multiprocessors", *id), format("{}", *units));
      }
      if (const auto bytes = device["totalGlobalMem"].integer(); id && bytes) {
        out_.attribute(format("gpu{}.memory.bytes", *id), format("{}", *bytes));
      }
    }
  }
}

// Of a job's timeline, put together from those of its ranks: each process is called by its own.
bool TraceAssembler::set_ranks_by_name() {
  std::map<std::int32_t, Process*> ranks;
  for (Process& process : processes_) {
    if (process.is_device || process.spans == 0) continue;
    const auto name = process_names_.find(process.text);
    const auto rank = name == process_names_.end() ? std::nullopt : rank_in_name(name->second);
    if (!rank || !ranks.emplace(*rank, &process).second) return false;
  }
  if (ranks.size() < 2) return false;
  for (const auto& [rank, process] : ranks) {
    process->info.role = ProcessRole::kRank;
    process->info.index = rank;
    process->info.label.clear();
  }
  return true;
}

void TraceAssembler::set_roles() {
  // The training process is the one with the steps, else the one with most spans.
  Process* main = nullptr;
  for (Process& process : processes_) {
    if (process.is_device || process.spans == 0) continue;
    if (main == nullptr || std::pair(process.steps, process.spans) > std::pair(main->steps, main->spans))
      main = &process;
  }
  const bool has_ranks = rank_ < 0 && set_ranks_by_name();
  if (main != nullptr && !has_ranks) {
    main->info.role = rank_ >= 0 ? ProcessRole::kRank : ProcessRole::kMain;
    main->info.index = static_cast<std::int32_t>(std::min<std::int64_t>(rank_, INT32_MAX));
    main->info.label.clear();
  }
  for (Process& process : processes_) {
    const auto name = process_names_.find(process.text);
    const bool is_named = &process == main || process.info.role == ProcessRole::kRank;
    if (!is_named && !process.is_device && name != process_names_.end()) {
      process.info.label = format("{} ({})", name->second, process.text);
    }
    (void)out_.process(process.info);
  }
}

// Of threads that something ran on; nothing is looked up in the table of lanes any more behind this.
void TraceAssembler::set_stages() {
  for (const auto& [where, stage] : stages_) {
    const TextTable::Place place = lane_table_.place_of(where.first, "c" + where.second);
    if (place.index == TextTable::kNone || place.is_new) continue;
    const Lane& lane = lanes_[place.index];
    if (lane.slot == 0) continue;
    out_.attribute(format("process.{}.thread.{}.stage", processes_[lane.slot - 1].info.slot, lane.thread),
                   format("{}", stage));
  }
}

void TraceAssembler::set_clock() {
  if (first_ns_ >= kUnixFromNs && first_ns_ != INT64_MAX) {
    out_.clock({.offset_ns = 0, .uncertainty_ns = 0, .is_absolute = true});
  } else if (base_ns_ > kUnixFromNs && base_ns_ < kTimeMaxNs) {
    out_.clock({.offset_ns = base_ns_, .uncertainty_ns = 0, .is_absolute = true});
  } else {
    out_.clock({});
  }
}

void TraceAssembler::finish() {
  for (Lane& lane : lanes_) {
    for (const Open& open : lane.open) {
      count("ingest.begins_unmatched", 1, open.offset);
      give_open(open, lane, -1);
    }
    lane.open.clear();
  }
  for (const auto& [key, begun] : async_) {
    for (const Async& one : begun) {
      count("ingest.begins_unmatched", 1, one.open.offset);
      give_open(one.open, lanes_[one.lane], -1);
    }
  }
  async_.clear();
  settle_times();
  if (arguments_skipped_ > 0) count("ingest.arguments_skipped", arguments_skipped_, first_skipped_offset_);
  if (named_.is_of_xla()) out_.attribute(kTraceProgramAttribute, kProgramOfXla);
  set_roles();
  set_stages();
  set_clock();
  for (const Count& one : counts_) out_.count_loss(one.counter, one.n, std::max<std::int64_t>(one.first_offset, 0));
  counts_.clear();
}

}  // namespace hotlap
