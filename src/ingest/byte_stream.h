#pragma once
// The bytes of a file, decompressed while they are read: gzip (several members too) and zstd (several frames too) are
// recognised by their first bytes. Whatever is compressed is untrusted; memory is bounded. Confined to one thread.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace hotlap {

enum class Compression : std::uint8_t { kNone, kGzip, kZstd };

class ByteStream {
 public:
  // A regular file; anything else is kInvalidInput and named as such. kNotFound, kIo.
  static Result<std::unique_ptr<ByteStream>> open(const std::filesystem::path& path);
  virtual ~ByteStream() = default;

  // Bytes written to `buffer`; 0: the end, see condition(). kIo.
  virtual Result<std::size_t> read(std::span<std::byte> buffer) = 0;

  enum class Condition : std::uint8_t { kSound, kTruncated, kDamaged };
  // Of compressed input, once read() gave 0: whether it ended where it should have.
  virtual Condition condition() const = 0;
  // Behind what is compressed stands something else than padding. It is not read.
  virtual bool has_trailing_bytes() const = 0;
  virtual Compression compression() const = 0;
  virtual std::uint64_t bytes_read() const = 0;   // of the file
  virtual std::uint64_t bytes_given() const = 0;  // decompressed
  virtual std::uint64_t file_bytes() const = 0;   // when it was opened
};

// "trace.json" of "trace.json.gz".
std::string_view without_compression_suffix(std::string_view file_name);

}  // namespace hotlap
