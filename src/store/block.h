#pragma once
// Sealed blocks: what every stored payload is wrapped in. Layout in store/format.h. A block that was damaged, cut
// short, is of another kind or claims to be larger than kBlockBytesMax is refused before anything is allocated for
// it.
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "store/format.h"

namespace hotlap {

// Packs and unpacks; keeps zstd's working memory between calls. Confined to one thread.
class BlockCodec {
 public:
  BlockCodec();
  ~BlockCodec();
  BlockCodec(const BlockCodec&) = delete;
  BlockCodec& operator=(const BlockCodec&) = delete;

  // Appends the sealed block to `out`. `pack`: try zstd, keep it when it is smaller.
  void seal(BlockKind kind, ByteView raw, bool pack, Bytes& out);
  // The bytes inside, valid until the next call or as long as `sealed_untrusted`; nothing when it is not whole.
  std::optional<ByteView> open(BlockKind kind, ByteView sealed_untrusted);

 private:
  struct State;
  std::unique_ptr<State> state_;
  Bytes scratch_;
};

}  // namespace hotlap
