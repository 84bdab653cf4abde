#include "ingest/byte_stream.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/shared_library.h"

namespace hotlap {
namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;
constexpr int kZlibGzipOnly = 16;      // added to the window's bits
constexpr int kZstdWindowLogMax = 27;  // 128 MiB: what `zstd --long` makes; more is refused
constexpr std::array<unsigned char, 2> kGzipMagic{0x1F, 0x8B};
constexpr std::array<unsigned char, 4> kZstdMagic{0x28, 0xB5, 0x2F, 0xFD};

// Turns compressed bytes into plain ones. `take` consumes from the front of `in`, fills the front of `out`.
class Decoder {
 public:
  struct Step {
    std::size_t consumed = 0;
    std::size_t produced = 0;
    bool is_damaged = false;
    bool is_trailing = false;  // what was consumed belongs to no member, and is not only padding
  };
  virtual ~Decoder() = default;
  virtual Step take(std::span<const unsigned char> in, std::span<unsigned char> out) = 0;
  // No member or frame is open: the input may end here.
  virtual bool is_between() const = 0;
};

bool is_padding(std::span<const unsigned char> in) {
  return std::all_of(in.begin(), in.end(), [](unsigned char byte) { return byte == 0; });
}

// What follows the last member and does not begin another one is not read, as gzip has it.
bool begins_member(std::span<const unsigned char> in) {
  return in[0] == kGzipMagic[0] && (in.size() < 2 || in[1] == kGzipMagic[1]);
}

class ZlibDecoder final : public Decoder {
 public:
  ZlibDecoder() { is_sound_ = ::inflateInit2(&stream_, MAX_WBITS + kZlibGzipOnly) == Z_OK; }
  ~ZlibDecoder() override { ::inflateEnd(&stream_); }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;

  Step take(std::span<const unsigned char> in, std::span<unsigned char> out) override {
    if (!is_sound_) return {.is_damaged = true};
    if (is_between_) {
      if (has_begun_ && !begins_member(in)) return {.consumed = in.size(), .is_trailing = !is_padding(in)};
      if (has_begun_) ::inflateReset(&stream_);
      has_begun_ = true;
      is_between_ = false;
    }
    stream_.next_in = const_cast<unsigned char*>(in.data());  // zlib's interface lacks a const
    stream_.avail_in = static_cast<unsigned>(in.size());
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<unsigned>(out.size());
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    is_between_ = code == Z_STREAM_END;
    return {.consumed = in.size() - stream_.avail_in,
            .produced = out.size() - stream_.avail_out,
            .is_damaged = code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR};
  }
  bool is_between() const override { return is_between_; }

 private:
  z_stream stream_{};
  bool is_sound_ = false;
  bool has_begun_ = false;
  bool is_between_ = true;
};

// ISA-L inflates two to three times as fast as zlib. Distributions have it as a shared object only, so it is looked for
// at run time; what is used of it has not changed since 2.20.
struct IsaL {
  decltype(&::isal_inflate_init) init = nullptr;
  decltype(&::isal_inflate_reset) reset = nullptr;
  decltype(&::isal_inflate) inflate = nullptr;
};

const IsaL* isa_l() {
  static const IsaL found = [] {
    IsaL functions;
    const Result<SharedLibrary> library = SharedLibrary::open("libisal.so.2");
    if (!library.ok()) return functions;
    library->bind(functions.init, {"isal_inflate_init"});
    library->bind(functions.reset, {"isal_inflate_reset"});
    library->bind(functions.inflate, {"isal_inflate"});
    return functions;
  }();
  return found.init != nullptr && found.reset != nullptr && found.inflate != nullptr ? &found : nullptr;
}

class IsaLDecoder final : public Decoder {
 public:
  explicit IsaLDecoder(const IsaL& functions) : isa_l_(functions), state_(std::make_unique<inflate_state>()) {
    isa_l_.init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }

  Step take(std::span<const unsigned char> in, std::span<unsigned char> out) override {
    if (is_between_) {
      if (has_begun_ && !begins_member(in)) return {.consumed = in.size(), .is_trailing = !is_padding(in)};
      if (has_begun_) {
        isa_l_.reset(state_.get());
        state_->crc_flag = ISAL_GZIP;
      }
      has_begun_ = true;
      is_between_ = false;
    }
    state_->next_in = const_cast<unsigned char*>(in.data());  // its interface lacks a const
    state_->avail_in = static_cast<std::uint32_t>(in.size());
    state_->next_out = out.data();
    state_->avail_out = static_cast<std::uint32_t>(out.size());
    const int code = isa_l_.inflate(state_.get());
    is_between_ = state_->block_state == ISAL_BLOCK_FINISH;
    return {.consumed = in.size() - state_->avail_in,
            .produced = out.size() - state_->avail_out,
            .is_damaged = code < 0 || code > ISAL_NAME_OVERFLOW};
  }
  bool is_between() const override { return is_between_; }

 private:
  const IsaL& isa_l_;
  std::unique_ptr<inflate_state> state_;
  bool has_begun_ = false;
  bool is_between_ = true;
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : stream_(::ZSTD_createDCtx(), &::ZSTD_freeDCtx) {
    if (stream_) ::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kZstdWindowLogMax);
  }

  Step take(std::span<const unsigned char> in, std::span<unsigned char> out) override {
    if (!stream_) return {.is_damaged = true};
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t left = ::ZSTD_decompressStream(stream_.get(), &output, &input);
    const bool is_damaged = ::ZSTD_isError(left) != 0;
    is_between_ = !is_damaged && left == 0;
    return {.consumed = input.pos, .produced = output.pos, .is_damaged = is_damaged};
  }
  bool is_between() const override { return is_between_; }

 private:
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> stream_;
  bool is_between_ = true;
};

class FileStream final : public ByteStream {
 public:
  FileStream(int fd, std::string name, std::uint64_t file_bytes)
      : fd_(fd), name_(std::move(name)), file_bytes_(file_bytes), input_(kInputBytes) {}
  ~FileStream() override { ::close(fd_); }
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  Result<void> begin() {
    HOTLAP_TRY(refill());
    const std::span<const unsigned char> head(input_.data(), filled_);
    if (head.size() >= kGzipMagic.size() && std::equal(kGzipMagic.begin(), kGzipMagic.end(), head.begin())) {
      compression_ = Compression::kGzip;
      if (const IsaL* fast = isa_l(); fast != nullptr) {
        decoder_ = std::make_unique<IsaLDecoder>(*fast);
      } else {
        decoder_ = std::make_unique<ZlibDecoder>();
      }
    } else if (head.size() >= kZstdMagic.size() && std::equal(kZstdMagic.begin(), kZstdMagic.end(), head.begin())) {
      compression_ = Compression::kZstd;
      decoder_ = std::make_unique<ZstdDecoder>();
    }
    return {};
  }

  Result<std::size_t> read(std::span<std::byte> buffer) override {
    if (buffer.empty() || condition_ != Condition::kSound) return std::size_t{0};
    auto* out = reinterpret_cast<unsigned char*>(buffer.data());  // unsigned char may alias std::byte
    const std::size_t produced_max = std::min<std::size_t>(buffer.size(), UINT_MAX);
    if (!decoder_) return read_plain({out, produced_max});
    for (;;) {
      if (at_ == filled_ && !is_at_end_) HOTLAP_TRY(refill());
      // At the end of the file the decoder may still hold output.
      const std::span<const unsigned char> in(input_.data() + at_, filled_ - at_);
      if (in.empty() && (!is_at_end_ || decoder_->is_between())) return std::size_t{0};
      const Decoder::Step step = decoder_->take(in, {out, produced_max});
      at_ += step.consumed;
      bytes_given_ += step.produced;
      has_trailing_bytes_ |= step.is_trailing;
      if (step.is_damaged) {
        condition_ = Condition::kDamaged;
      } else if (step.produced == 0 && step.consumed == 0) {
        if (!is_at_end_ && at_ == filled_) continue;
        condition_ = is_at_end_ ? Condition::kTruncated : Condition::kDamaged;
      }
      if (step.produced > 0 || condition_ != Condition::kSound) return step.produced;
    }
  }

  Condition condition() const override { return condition_; }
  bool has_trailing_bytes() const override { return has_trailing_bytes_; }
  Compression compression() const override { return compression_; }
  std::uint64_t bytes_read() const override { return bytes_read_; }
  std::uint64_t bytes_given() const override { return bytes_given_; }
  std::uint64_t file_bytes() const override { return file_bytes_; }

 private:
  Result<std::size_t> read_plain(std::span<unsigned char> out) {
    std::size_t n = std::min(out.size(), filled_ - at_);
    if (n > 0) {
      std::copy_n(input_.data() + at_, n, out.data());
      at_ += n;
    } else {
      HOTLAP_TRY_ASSIGN(n, read_file(out));
    }
    bytes_given_ += n;
    return n;
  }

  Result<std::size_t> read_file(std::span<unsigned char> out) {
    for (;;) {
      const ::ssize_t n = ::read(fd_, out.data(), out.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_error(format("{}: cannot be read", name_), errno);
      bytes_read_ += static_cast<std::uint64_t>(n);
      return static_cast<std::size_t>(n);
    }
  }

  Result<void> refill() {
    at_ = 0;
    HOTLAP_TRY_ASSIGN(filled_, read_file(input_));
    is_at_end_ = filled_ == 0;
    return {};
  }

  int fd_;
  std::string name_;
  std::uint64_t file_bytes_;
  std::vector<unsigned char> input_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  bool is_at_end_ = false;
  std::unique_ptr<Decoder> decoder_;
  Compression compression_ = Compression::kNone;
  Condition condition_ = Condition::kSound;
  bool has_trailing_bytes_ = false;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_given_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> ByteStream::open(const std::filesystem::path& path) {
  HOTLAP_TRY(check_regular_file(path));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return errno_error(path.string(), errno);
  struct stat found {};
  const std::uint64_t bytes = ::fstat(fd, &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  auto stream = std::make_unique<FileStream>(fd, path.string(), bytes);
  HOTLAP_TRY(stream->begin());
  return std::unique_ptr<ByteStream>(std::move(stream));
}

std::string_view without_compression_suffix(std::string_view file_name) {
  for (const std::string_view suffix : {".gz", ".zst", ".gzip", ".zstd"}) {
    if (file_name.size() > suffix.size() && file_name.ends_with(suffix)) {
      return file_name.substr(0, file_name.size() - suffix.size());
    }
  }
  return file_name;
}

}  // namespace hotlap
