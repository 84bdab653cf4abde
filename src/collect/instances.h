#pragma once
// The instances of one source (disks, interfaces, mounts), found by name in the order in which the source lists
// them: in the steady state each look-up is one comparison. Bounded; what does not fit is counted once per instance
// in excess.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "model/sink.h"

namespace hotlap {

template <class Entry>
class InstanceTable {
 public:
  struct Slot {
    std::string name;
    Entry entry{};
    bool is_new = true;       // until the first end() after it was found, and again after it was lost
    bool is_present = false;  // seen in the last complete pass
    std::uint64_t pass = 0;   // of its last sighting
  };

  explicit InstanceTable(std::size_t instances_max) : instances_max_(instances_max) {}

  // Starts a pass over the source.
  void begin() {
    ++pass_;
    cursor_ = 0;
    refused_ = 0;
  }
  // The slot of `name`, made when it is not known; null beyond the bound. Valid for as long as the table.
  Slot* find_or_add(std::string_view name) {
    for (std::size_t n = 0; n < slots_.size(); ++n) {
      Slot& slot = slots_[(cursor_ + n) % slots_.size()];
      if (slot.name != name) continue;
      cursor_ = (cursor_ + n + 1) % slots_.size();
      slot.pass = pass_;
      return &slot;
    }
    Slot* slot = slots_.size() < instances_max_ ? &slots_.emplace_back() : absent_slot();
    if (slot == nullptr) {
      ++refused_;
      return nullptr;
    }
    *slot = Slot{};
    slot->name = name;
    slot->pass = pass_;
    cursor_ = 0;
    return slot;
  }
  // Ends a pass: `lost` is called once for each slot that was present before and is no longer. Instances in excess
  // of the bound are counted as series refused, `series_each` for each one more than ever before.
  template <class F>
  void end(SampleSink& out, std::uint64_t series_each, F lost) {
    for (Slot& slot : slots_) {
      const bool is_seen = slot.pass == pass_;
      if (slot.is_present && !is_seen) lost(slot);
      slot.is_present = is_seen;
      slot.is_new = !is_seen;
    }
    if (refused_ > refused_max_) {
      out.count_loss("record.series_refused", (refused_ - refused_max_) * series_each);
      refused_max_ = refused_;
    }
  }
  std::deque<Slot>& slots() { return slots_; }

 private:
  // One whose instance is gone, to be used for another: containers make and drop interfaces for ever.
  Slot* absent_slot() {
    for (Slot& slot : slots_) {
      if (!slot.is_present && slot.pass != pass_) return &slot;
    }
    return nullptr;
  }

  std::deque<Slot> slots_;  // a deque: slots stay where they are when it grows
  std::size_t instances_max_;
  std::size_t cursor_ = 0;  // where the next name is expected
  std::uint64_t pass_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t refused_max_ = 0;
};

}  // namespace hotlap
