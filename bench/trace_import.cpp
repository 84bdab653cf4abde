// How fast a trace is read and stored, and at what memory: a generated Kineto trace of the size asked for is imported
// into a recording, `repeats` times; the fastest counts. One core. MB/s are of CPU time, so that other load counts
// less.
//
//   trace_import [MEGABYTES=256] [REPEATS=3] [FILE]     FILE: an existing trace in place of the generated one
//   trace_import --write FILE MEGABYTES                 only writes the generated trace (for gzip, for peers)
//
// Prints MB/s of JSON, events/s, bytes stored per event and the peak of memory: parse alone, parse + store, and all
// facts: the same and then everything that `hotlap analyze` makes of it. Exit code 1: all facts at less than 250 MB/s.
// The floor is trace_floor on the same file, right before or after.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "ingest/import.h"
#include "model/run.h"
#include "store/import_writer.h"
#include "store/run_folder.h"
#include "view/analyze.h"

namespace {

namespace fs = std::filesystem;
using namespace hotlap;  // NOLINT(google-build-using-namespace)

constexpr double kMegabyte = 1e6;
constexpr double kFactsTarget = 250;  // MB/s

// Steps as Kineto writes them: operators with shapes, launches, kernels with their grid, flows.
class Generator {
 public:
  explicit Generator(std::FILE* out) : out_(out) {}

  void write(std::uint64_t bytes_wanted) {
    put("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\"id\": 0, \"name\": \"NVIDIA H100 80GB HBM3\"}\n "
        " ],\n"
        "  \"baseTimeNanoseconds\": 1712982000000000000,\n  \"traceEvents\": [\n");
    for (std::uint64_t step = 0; bytes_ < bytes_wanted; ++step) write_step(step);
    put("  {\n    \"ph\": \"i\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", \"ts\": 1, \"s\": "
        "\"g\"\n  }\n  ]\n}\n");
  }

 private:
  static constexpr std::uint64_t kOperatorsPerStep = 600;

  void put(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), out_);
    bytes_ += text.size();
  }
  template <class... Args>
  void put_event(const char* text, Args... args) {
    char buffer[1024];
    const int n = std::snprintf(buffer, sizeof buffer, text, args...);
    put({buffer, static_cast<std::size_t>(n)});
  }

  void write_step(std::uint64_t step) {
    const unsigned long long start = 1000 + step * 100'000;
    put_event(
        "  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%llu\", \"pid\": 1, \"tid\": "
        "1,\n"
        "    \"ts\": %llu.125, \"dur\": 99990.5,\n    \"args\": {\n      \"External id\": %llu,\"Ev Idx\": 0\n    }\n  "
        "},\n",
        static_cast<unsigned long long>(step), start, static_cast<unsigned long long>(next_));
    for (std::uint64_t i = 0; i < kOperatorsPerStep; ++i) {
      const unsigned long long at = start + i * 160;
      const unsigned long long id = ++next_;
      put_event(
          "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op_%llu\", \"pid\": 1, \"tid\": 1,\n"
          "    \"ts\": %llu.%03llu, \"dur\": 45.277,\n    \"args\": {\n      \"External id\": %llu,\"Record function "
          "id\": 0, "
          "\"Concrete Inputs\": [\"\", \"\", \"1\"], \"Input type\": [\"float\", \"float\", \"Scalar\"], \"Input "
          "Strides\": "
          "[[1024, 1], [1024, 1], []], \"Input Dims\": [[64, 1024], [64, 1024], []], \"Ev Idx\": %llu\n    }\n  },\n",
          static_cast<unsigned long long>(i % 90), at, id % 1000, id, id);
      put_event(
          "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \"tid\": 1,\n"
          "    \"ts\": %llu.%03llu, \"dur\": 6.103,\n    \"args\": {\n      \"External id\": %llu,\"cbid\": 211, "
          "\"correlation\": %llu\n    }\n  },\n",
          at + 20, id % 997, id, id);
      put_event(
          "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void at::native::vectorized_elementwise_kernel<4, "
          "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, kernel_%llu)\", \"pid\": 0, \"tid\": "
          "7,\n"
          "    \"ts\": %llu.%03llu, \"dur\": 31.008,\n    \"args\": {\n      \"External id\": %llu,\"queued\": 0, "
          "\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %llu, \"registers per thread\": 32, \"shared "
          "memory\": 0, \"blocks per SM\": 1.9393, \"grid\": [256, 1, 1], \"block\": [128, 1, 1]\n    }\n  },\n",
          static_cast<unsigned long long>(i % 40), at + 30, id % 991, id, id);
      put_event(
          "  {\n    \"ph\": \"s\", \"id\": %llu, \"pid\": 1, \"tid\": 1, \"ts\": %llu.250,\n    \"cat\": \"ac2g\", "
          "\"name\": "
          "\"ac2g\"\n  },\n  {\n    \"ph\": \"f\", \"id\": %llu, \"pid\": 0, \"tid\": 7, \"ts\": %llu.500,\n    "
          "\"cat\": "
          "\"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },\n",
          id, at + 20, id, at + 30);
    }
  }

  std::FILE* out_;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_ = 1;
};

bool generate(const fs::path& path, std::uint64_t bytes) {
  std::FILE* const out = std::fopen(path.c_str(), "w");
  if (out == nullptr) return false;
  Generator(out).write(bytes);
  return std::fclose(out) == 0;
}

// Takes everything and keeps nothing: the parser alone.
class Discard final : public ImportSink {
 public:
  void clock(const ImportClock&) override {}
  SeriesHandle series(const MetricDesc&, std::string_view) override { return {0}; }
  void sample(SeriesHandle, std::int64_t, Value) override {}
  std::uint32_t name(std::string_view) override { return ++names_; }
  std::uint32_t process(const ProcessInfo& process) override { return process.slot == 0 ? ++processes_ : process.slot; }
  void span(const Span&) override {}
  void event(const Event&) override {}
  void attribute(std::string_view, std::string_view) override {}
  void count_loss(std::string_view, std::uint64_t, std::int64_t) override {}

 private:
  std::uint32_t names_ = 0;
  std::uint32_t processes_ = 0;
};

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void print(const char* what, double seconds, const ImportStats& stats) {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  std::printf("%-16s %8.0f MB/s  %6.2f M events/s  peak %ld MB\n", what,
              static_cast<double>(stats.bytes) / kMegabyte / seconds,
              static_cast<double>(stats.events) / kMegabyte / seconds, use.ru_maxrss / 1024);
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

// As `hotlap analyze FILE` does it: into a run's folder, then its document. Seconds of CPU; below 0: it failed.
double all_facts(const fs::path& trace, const fs::path& home, ImportStats& stats) {
  const double begin_s = cpu_seconds();
  static std::uint64_t made = 0;
  const RunInfo info{.id = make_ulid(1, 2, ++made), .name = "bench", .status = RunStatus::kFinished};
  Result<RunFolder> run = RunFolder::create(home, info);
  if (!run.ok()) return -fail(run.error());
  const fs::path place = run->path();
  fs::create_directory(place / "trace");
  const RecordingInfo recording{.id = make_ulid(1, 3, made), .run_id = info.id, .attributes = {{"source.file", "t"}}};
  Result<std::unique_ptr<ImportWriter>> writer = ImportWriter::create(place / "trace" / "0001.hotlap", recording, {});
  if (!writer.ok()) return -fail(writer.error());
  const Result<ImportOutcome> outcome = import_file(trace, **writer, {});
  if (!outcome.ok()) return -fail(outcome.error());
  (*writer)->attribute("source.format", outcome->format);
  if (const Result<void> closed = (*writer)->close(); !closed.ok()) return -fail(closed.error());
  const Result<AnalysisDocument> document = analyze_run(*std::move(run), {}, false);
  if (!document.ok()) return -fail(document.error());
  stats = outcome->stats;
  const double seconds = cpu_seconds() - begin_s;
  fs::remove_all(place);
  return seconds;
}

int measure(const fs::path& trace, const fs::path& folder, int repeats) {
  double parse_s = 1e9;
  double store_s = 1e9;
  ImportStats stats;
  std::uint64_t stored_bytes = 0;
  std::uint64_t spans = 0;
  for (int i = 0; i < repeats; ++i) {
    Discard discard;
    const double begin_s = cpu_seconds();
    Result<ImportOutcome> outcome = import_file(trace, discard, {});
    if (!outcome.ok()) return fail(outcome.error());
    parse_s = std::min(parse_s, cpu_seconds() - begin_s);
    stats = outcome->stats;
  }
  print("parse", parse_s, stats);
  for (int i = 0; i < repeats; ++i) {
    const fs::path file = folder / "0001.hotlap";
    fs::remove(file);
    const double begin_s = cpu_seconds();
    Result<std::unique_ptr<ImportWriter>> writer = ImportWriter::create(file, {}, {});
    if (!writer.ok()) return fail(writer.error());
    const Result<ImportOutcome> outcome = import_file(trace, **writer, {});
    if (!outcome.ok()) return fail(outcome.error());
    if (const Result<void> closed = (*writer)->close(); !closed.ok()) return fail(closed.error());
    store_s = std::min(store_s, cpu_seconds() - begin_s);
    stored_bytes = fs::file_size(file);
    spans = (*writer)->spans_written();
  }
  print("parse + store", store_s, stats);
  double facts_s = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const double seconds = all_facts(trace, folder / "home", stats);
    if (seconds < 0) return 1;
    facts_s = std::min(facts_s, seconds);
  }
  print("all facts", facts_s, stats);
  const auto stored = static_cast<double>(stored_bytes);
  std::printf("%.1f bytes stored per event, %.1f per span (%llu spans), %.1f MB of JSON\n",
              stored / static_cast<double>(std::max<std::uint64_t>(stats.events, 1)),
              stored / static_cast<double>(std::max<std::uint64_t>(spans, 1)), static_cast<unsigned long long>(spans),
              static_cast<double>(stats.bytes) / kMegabyte);
  return static_cast<double>(stats.bytes) / kMegabyte / facts_s >= kFactsTarget ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--write") {
    return generate(argv[2], std::strtoull(argv[3], nullptr, 10) * 1'000'000) ? 0 : 1;
  }
  const std::uint64_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 256;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  std::string folder = (fs::temp_directory_path() / "hotlap-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  fs::path trace = argc > 3 ? fs::path(argv[3]) : fs::path(folder) / "trace.json";
  int code = 1;
  if (argc > 3 || generate(trace, megabytes * 1'000'000)) code = measure(trace, folder, repeats);
  fs::remove_all(folder);
  return code;
}
