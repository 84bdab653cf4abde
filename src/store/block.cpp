#include "store/block.h"

#include <zstd.h>

#include "base/check.h"

namespace hotlap {
namespace {

constexpr int kLevel = 3;
constexpr int kWindowLog = 18;  // columns are at most some 100 KiB; a larger window only costs memory
constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kPackBytesMin = 64;  // below, a zstd frame's own header eats the gain

}  // namespace

struct BlockCodec::State {
  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> packer{nullptr, &ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> unpacker{nullptr, &ZSTD_freeDCtx};
};

BlockCodec::BlockCodec() : state_(std::make_unique<State>()) {}
BlockCodec::~BlockCodec() = default;

void BlockCodec::seal(BlockKind kind, ByteView raw, bool pack, Bytes& out) {
  HOTLAP_CHECK(raw.size() <= kBlockBytesMax);
  const std::size_t start = out.size();
  out.push_back(static_cast<std::byte>(kind));
  out.push_back(std::byte{0});
  put_varint(out, raw.size());
  const std::size_t content = out.size();
  bool packed = false;
  if (pack && raw.size() >= kPackBytesMin) {
    if (!state_->packer) {
      state_->packer.reset(ZSTD_createCCtx());
      HOTLAP_CHECK(state_->packer != nullptr);
      ZSTD_CCtx_setParameter(state_->packer.get(), ZSTD_c_compressionLevel, kLevel);
      ZSTD_CCtx_setParameter(state_->packer.get(), ZSTD_c_windowLog, kWindowLog);
      ZSTD_CCtx_setParameter(state_->packer.get(), ZSTD_c_contentSizeFlag, 0);
    }
    out.resize(content + ZSTD_compressBound(raw.size()));
    const std::size_t size =
        ZSTD_compress2(state_->packer.get(), out.data() + content, out.size() - content, raw.data(), raw.size());
    packed = ZSTD_isError(size) == 0 && size < raw.size();
    out.resize(packed ? content + size : content);
  }
  if (packed) {
    out[start + 1] = std::byte{1};
  } else {
    put_bytes(out, raw);
  }
  put_fixed(out, crc32(ByteView(out).subspan(start)));
}

std::optional<ByteView> BlockCodec::open(BlockKind kind, ByteView sealed_untrusted) {
  if (sealed_untrusted.size() < kCrcBytes) return std::nullopt;
  const ByteView body = sealed_untrusted.first(sealed_untrusted.size() - kCrcBytes);
  ByteReader trailer(sealed_untrusted.last(kCrcBytes));
  if (trailer.fixed<std::uint32_t>() != crc32(body)) return std::nullopt;
  ByteReader reader(body);
  const auto found_kind = reader.fixed<std::uint8_t>();
  const auto packed = reader.fixed<std::uint8_t>();
  const std::uint64_t size = reader.varint();
  const ByteView content = reader.bytes(reader.remaining());
  if (!reader.ok() || found_kind != static_cast<std::uint8_t>(kind) || packed > 1 || size > kBlockBytesMax) {
    return std::nullopt;
  }
  if (packed == 0) return content.size() == size ? std::optional(content) : std::nullopt;
  if (!state_->unpacker) {
    state_->unpacker.reset(ZSTD_createDCtx());
    HOTLAP_CHECK(state_->unpacker != nullptr);
  }
  if (scratch_.size() < size) scratch_.resize(size);
  const std::size_t got =
      ZSTD_decompressDCtx(state_->unpacker.get(), scratch_.data(), size, content.data(), content.size());
  if (ZSTD_isError(got) != 0 || got != size) return std::nullopt;
  return ByteView(scratch_).first(size);
}

}  // namespace hotlap
