#pragma once
// A TensorBoard event file of scalars: records with masked CRC-32C around protocol buffers "Event" (file version
// brain.Event:2). Written front to back.
//
//   record: length u64 le · masked CRC of these 8 bytes u32 le · content · masked CRC of the content u32 le
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "base/bytes.h"

namespace hotlap {

// CRC-32 with Castagnoli's polynomial (iSCSI's): "123456789" gives 0xE3069283.
std::uint32_t crc32c(ByteView bytes);

class TensorboardEvents {
 public:
  // Begins the file. `out` outlives it.
  TensorboardEvents(std::ostream& out, double wall_s);
  // A point of the curve `tag` ("step/data_wait_ms"); slashes make TensorBoard's groups.
  void add_scalar(std::string_view tag, std::int64_t step, double wall_s, float value);

 private:
  void write_record(ByteView content);

  std::ostream& out_;
  Bytes event_;  // scratch
  Bytes summary_;
  Bytes value_;
};

}  // namespace hotlap
