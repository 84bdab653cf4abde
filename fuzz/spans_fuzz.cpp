// Hostile blocks of spans: refused, or decoded into spans that encode to the same spans again.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "store/span_block.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<hotlap::Span> spans;
  if (!hotlap::decode_spans(std::as_bytes(std::span(data, size)), spans)) return 0;
  (void)hotlap::summarize(spans);
  hotlap::Bytes encoded;
  hotlap::encode_spans(spans, encoded);
  std::vector<hotlap::Span> again;
  if (!hotlap::decode_spans(encoded, again) || again != spans) std::abort();
  return 0;
}
