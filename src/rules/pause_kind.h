#pragma once
// What a pause of training is that shows in time alone: saving, the begin of an epoch, or not told. Thread-safe:
// nothing here has state.
#include <cstdint>

#include "model/fact.h"

namespace hotlap {

enum class PauseKind : std::uint8_t { kUnknown, kCheckpoint, kEpochGap };

// Of a fact interruptions.summary. `is_told`: by the program's own words or by the number of an epoch's steps, not by
// what the machine did.
struct PauseGuess {
  PauseKind kind = PauseKind::kUnknown;
  bool is_told = false;
};
PauseGuess pause_kind(const FactTable& facts, const Fact& interruptions);

}  // namespace hotlap
