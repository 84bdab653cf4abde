#pragma once
// The importer contract: one file per foreign format. Detection and creation are separate, so that a folder or an
// archive is sniffed member by member first.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "ingest/kept_arguments.h"
#include "model/event.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/sink.h"
#include "model/span.h"

namespace hotlap {

// Clock of the imported times and how they map to Unix time. Times are pushed as the file has them (file time).
struct ImportClock {
  std::int64_t offset_ns = 0;        // Unix time = file time + offset, where it is absolute; else added all the same
  std::int64_t uncertainty_ns = -1;  // -1: unknown
  bool is_absolute = false;          // file time is Unix time
  bool has_year = true;              // false: it would be, but for the year, which stands as 2023
};

// Where an importer pushes; implemented by the store and by tests. Confined to the importing thread. Times may come in
// any order: the sink sorts.
class ImportSink {
 public:
  virtual ~ImportSink() = default;
  // Once, at any time: it holds for everything pushed, before and after.
  virtual void clock(const ImportClock& clock) = 0;
  // `metric` is copied. The same (name, instance) gives the same handle.
  virtual SeriesHandle series(const MetricDesc& metric, std::string_view instance) = 0;
  virtual void sample(SeriesHandle series, std::int64_t t_ns, Value value) = 0;
  virtual std::uint32_t name(std::string_view text) = 0;
  // Returns its slot. With `slot` 0 a new one; with one that was returned before, it is described anew.
  virtual std::uint32_t process(const ProcessInfo& process) = 0;
  virtual void span(const Span& span) = 0;
  virtual void event(const Event& event) = 0;
  virtual void attribute(std::string_view key, std::string_view value) = 0;  // facts of the host or the run
  virtual void count_loss(std::string_view counter, std::uint64_t count, std::int64_t byte_offset) = 0;
  // The byte of the input from which comes what is pushed next, for losses that only the sink can see.
  virtual void at(std::int64_t /*byte_offset*/) {}
  // The first repair will be an error: an importer that reads over what is no sound input looks for it.
  virtual bool is_strict() const { return false; }
  // Of traces: which arguments of events are kept as the detail of their span. Stands as long as the sink.
  virtual const KeptArguments& kept_arguments() const { return KeptArguments::standard(); }
};

struct ImportStats {
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;
};

// A push parser: any chunk boundaries, bounded memory. One bad event costs one event.
class StreamImporter {
 public:
  virtual ~StreamImporter() = default;
  virtual Result<void> push(ByteView chunk_untrusted) = 0;
  virtual Result<ImportStats> finish() = 0;
};

struct ImporterSpec {
  std::string_view name;
  std::string_view summary;
  std::string_view extensions;  // for help: ".json .json.gz"
  int priority = 0;             // unique; the highest that recognises the input wins
  // Sees at most the first 4 KiB (decompressed) and the file's name without ".gz" and alike. A folder is shown to
  // importers with `open_path`, with an empty head and a name that ends in '/'.
  bool (*sniff)(ByteView head_untrusted, std::string_view file_name) = nullptr;
  // Exactly one of the two is set: a stream, or a path (databases, archives, folders).
  std::unique_ptr<StreamImporter> (*open_stream)(ImportSink& out) = nullptr;
  Result<ImportStats> (*open_path)(const std::filesystem::path& path, ImportSink& out) = nullptr;
};

}  // namespace hotlap
