#pragma once
// The change of one figure from one side of a comparison to the other, with the interval that the measurements support.
//
// Within a run the figure's own interval counts, made of means of blocks since neighbouring steps resemble each other.
// It knows nothing of what differs from run to run (clocks, placement, neighbours), so it is never taken finer than
// kFloorPct. Several runs on a side tell that spread themselves: then the interval is that of their means (Student's t
// over the pooled variance), and there is no floor.
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hotlap {

// Runs differ by so much for no reason that we could name. In percent, or in points of a share.
inline constexpr double kFloorPct = 2;

// A figure of one run. half_width: of the mean's 95 % interval; absent: too little was seen to tell.
struct Measured {
  double value = 0;
  std::optional<double> half_width;
};

enum class ChangeScale {
  kPercent,  // of the value before, which is positive
  kPoints,   // difference: for shares, which may be 0
};

struct Change {
  double before = 0;  // mean of the runs of a side
  double after = 0;
  double change = 0;  // percent or points
  double low = 0;     // 95 % interval of the change
  double high = 0;
  bool is_between_runs = false;  // the interval is that of several runs
};

// Nothing when a side is empty, a percentage is asked of a value that is not positive, or the only run of either side
// has no interval of its own.
std::optional<Change> change_of(std::span<const Measured> before, std::span<const Measured> after, ChangeScale scale);

// "+3.1", "-0.4"; what rounds to nothing has no sign.
std::string change_figure(double change);

// "no difference" unless the whole interval lies on one side of 0; else the word given for it.
std::string_view word_of(const Change& change, std::string_view when_lower, std::string_view when_higher);

}  // namespace hotlap
