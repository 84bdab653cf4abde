#include "rules/xid_words.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace hotlap {
namespace {

// NVIDIA's list of XID errors (docs.nvidia.com/deploy/xid-errors).
constexpr std::array kXids{
    XidMeaning{13, XidBlame::kProgram, "a kernel did what the GPU refuses: a bad address or instruction"},
    XidMeaning{31, XidBlame::kProgram, "a kernel used memory that is not its own"},
    XidMeaning{32, XidBlame::kDriver, "commands arrived damaged: the bus, or the driver"},
    XidMeaning{38, XidBlame::kDriver, "an error of the driver's firmware"},
    XidMeaning{43, XidBlame::kProgram, "a program's work was stopped for an error of its own; the GPU is sound"},
    XidMeaning{45, XidBlame::kAftermath, "work was cleared away after another error, or after a program was killed"},
    XidMeaning{48, XidBlame::kBoard, "a memory error that could not be corrected"},
    XidMeaning{61, XidBlame::kBoard, "its own controller warns of an error"},
    XidMeaning{62, XidBlame::kBoard, "its own controller stopped"},
    XidMeaning{63, XidBlame::kWear, "a row of memory was replaced; it takes effect at the next reset"},
    XidMeaning{64, XidBlame::kBoard, "a row of memory could not be replaced"},
    XidMeaning{68, XidBlame::kDriver, "an error of the video decoder"},
    XidMeaning{69, XidBlame::kProgram, "a kernel did what the GPU refuses"},
    XidMeaning{74, XidBlame::kBoard, "an error of the NVLink"},
    XidMeaning{79, XidBlame::kBoard, "it fell off the bus"},
    XidMeaning{92, XidBlame::kWear, "many memory errors that could be corrected"},
    XidMeaning{94, XidBlame::kWear, "a memory error, contained to one program: that program dies of it"},
    XidMeaning{95, XidBlame::kBoard, "a memory error that was not contained"},
    XidMeaning{119, XidBlame::kBoard, "its own processor (GSP) does not answer"},
    XidMeaning{120, XidBlame::kBoard, "its own processor (GSP) failed"},
    XidMeaning{140, XidBlame::kBoard, "a memory error that could not be recovered"},
};

}  // namespace

XidMeaning xid_meaning(int number) {
  const auto* const known = std::ranges::find(kXids, number, &XidMeaning::number);
  if (known != kXids.end()) return *known;
  return {.number = number, .blame = XidBlame::kDriver, .words = "an error of the driver; NVIDIA's list says which"};
}

XidMeaning gravest_xid(std::string_view numbers) {
  XidMeaning gravest;
  for (const std::string_view one : split(numbers, ',')) {
    const XidMeaning xid = xid_meaning(static_cast<int>(parse_i64(trim(one)).value_or(0)));
    if (gravest.number == 0 || xid.blame > gravest.blame) gravest = xid;
  }
  return gravest;
}

std::string_view xid_advice(const XidMeaning& xid) {
  switch (xid.blame) {
    case XidBlame::kProgram:
      return "find the kernel: run again with CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer; the GPU need not be "
             "left out";
    case XidBlame::kAftermath: return "look at what came before it";
    case XidBlame::kWear: return "go on from the last checkpoint and reset the GPU when the node is free; watch it";
    case XidBlame::kDriver: return "go on from the last checkpoint; where it comes again, update the driver";
    case XidBlame::kBoard: return "checkpoint where it still works, leave this node out, reset the GPU";
  }
  return {};
}

}  // namespace hotlap
