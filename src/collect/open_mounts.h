#pragma once
// On which mounts a process has data files open, from its descriptors: tells a loader that reads an NFS share from
// one that reads the local disk. Looks at 256 descriptors at most and follows 16 mounts per process.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "collect/mounts.h"
#include "model/sink.h"

namespace hotlap {

class OpenMounts {
 public:
  // One look; `metric` is the index of the count of open files in the spec. About 2 µs per descriptor. Mounts that
  // the process has left have 0 open files. Returns the mounts that were not seen at it before.
  std::vector<const Mount*> look(const Host& host, std::int32_t pid, std::string_view slot,
                                 std::span<const Mount> mounts, std::uint16_t metric, SampleSink& out);
  void forget(SampleSink& out, bool is_lost);

 private:
  struct Followed {
    std::string point;
    SeriesHandle series;
    std::uint64_t files = 0;
  };
  std::vector<Followed> followed_;
};

}  // namespace hotlap
