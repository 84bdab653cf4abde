#pragma once
// Puts the steps that lines of a log end on the time axis. A log that prints each n-th step says how long n of them
// took together; what that is beyond n typical ones, where an epoch began, a checkpoint was saved or the model was
// evaluated, is a pause between steps and no part of them.
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "ingest/importer.h"

namespace hotlap {

// kSilence: for long, and nothing says why.
enum class LogPause : std::uint8_t { kNone, kEpoch, kSaved, kEvaluation, kSilence };

// What a step may be made of besides waiting for data.
inline constexpr std::size_t kLogParts = 4;
inline constexpr std::array<SpanKind, kLogParts> kLogPartKinds{SpanKind::kForward, SpanKind::kBackward,
                                                               SpanKind::kCollective, SpanKind::kOptimizer};

// Steps that end with a line.
struct LogBlock {
  std::int64_t number = 0;  // of the last
  std::int64_t count = 0;
  std::int64_t begin_ns = 0;                // where the line before stands
  std::int64_t end_ns = 0;                  // where this one stands
  std::int64_t own_ns = 0;                  // of all, as the line says; 0: it does not
  bool is_head = false;                     // the log's first: how many they are is less sure
  std::int64_t last_ns = -1;                // of the last one, as the line says; negative: as the others
  LogPause pause = LogPause::kNone;         // what else happened between the two lines
  std::int64_t before = 0;                  // steps that lie before it
  std::optional<std::int64_t> pause_at_ns;  // when it began, where that was printed
  std::int64_t evaluated_from_ns = 0;       // an evaluation of which both ends are known
  std::int64_t evaluated_to_ns = 0;
  double wait_s = -1;  // of each step but the last, waiting for data; negative: not told
  double last_wait_s = -1;
  std::array<double, kLogParts> parts_s{-1, -1, -1, -1};  // of each; negative: not told
  std::int64_t samples = -1;
};

// The steps of one process. State is bounded. Confined to one thread.
class LogSteps {
 public:
  explicit LogSteps(ImportSink& out) : out_(out) {}

  // Steps come out later than they go in, until it is known how long one takes.
  void give(std::uint32_t process, const LogBlock& block);
  void finish();

  std::uint64_t given() const { return given_; }
  std::uint64_t refused() const { return refused_; }

 private:
  void learn(const LogBlock& block);
  double typical_ns() const;
  void flush();
  void put(const LogBlock& block);
  void put_steps(const LogBlock& block, std::int64_t first, std::int64_t count, std::int64_t start_ns,
                 std::int64_t end_ns);
  void put_parts(const LogBlock& block, bool is_last, std::int64_t step, std::int64_t start_ns,
                 std::int64_t duration_ns);

  ImportSink& out_;
  std::uint32_t process_ = 0;
  std::vector<LogBlock> waiting_;
  bool is_flowing_ = false;
  std::deque<double> recent_ns_;   // of a step, by the last blocks without a pause
  std::int64_t recent_count_ = 0;  // steps of the last such block
  std::uint64_t given_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace hotlap
