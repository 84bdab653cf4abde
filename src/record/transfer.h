#pragma once
// Bytes that a download or upload moved, and which share of the link it used.
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/host.h"

namespace hotlap {

// Sums over the machine's real interfaces (in a container, which has none, over the virtual ones) and disks; what the
// source does not tell is -1.
struct MovedBytes {
  std::int64_t received = -1;
  std::int64_t sent = -1;
  std::int64_t disk_written = -1;
  std::int64_t link_bits_per_s = -1;  // of the fastest interface that is up
};
MovedBytes moved_bytes(const Host& host);

// "1.5 GiB in 12 s (122 MiB/s, 98 % of the link)": what came (download) or went (upload) between the two readings.
// Bytes of other programs count too: the sums are the machine's.
struct TransferSummary {
  std::int64_t bytes = -1;
  std::string text;
};
TransferSummary summarise_transfer(const MovedBytes& before, const MovedBytes& after, std::int64_t duration_ns,
                                   bool is_download);

}  // namespace hotlap
