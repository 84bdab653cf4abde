#pragma once
// NumPy's archive of arrays: a zip file, stored, with one .npy each. Written front to back, so that it can go down a
// pipe; one array is in memory at a time.
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace hotlap {

// The bytes of a one-dimensional .npy: `type` as NumPy writes it ("'<f8'", "[('t_ns', '<i8'), ('value', '<f8')]").
Bytes npy_of(std::string_view type, std::size_t count, ByteView content);
Bytes npy_of(std::span<const double> values);
Bytes npy_of(std::span<const std::int64_t> values);
// Unicode of fixed width, as wide as the longest; bad UTF-8 becomes U+FFFD.
Bytes npy_of(std::span<const std::string> texts);

class NpzWriter {
 public:
  explicit NpzWriter(std::ostream& out) : out_(out) {}
  // np.load(file)[name]. Names are unique, not empty, and shorter than 64 KiB. kResourceLimit beyond 4 GiB or 65,535
  // arrays, which plain zip cannot hold.
  Result<void> add(std::string_view name, ByteView npy);
  // Nothing may be added afterwards.
  Result<void> finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc;
    std::uint32_t size;
    std::uint32_t offset;
  };
  void write(ByteView bytes);

  std::ostream& out_;
  std::uint64_t offset_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace hotlap
