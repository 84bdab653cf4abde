#include "ingest/byte_stream.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <fstream>
#include <string>

#include "base/format.h"
#include "support/temp_dir.h"

namespace hotlap {
namespace {

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

class ByteStreams : public ::testing::Test {
 protected:
  struct Content {
    std::string text;
    ByteStream::Condition condition;
    Compression compression;
  };

  Content content(std::string_view bytes, std::size_t buffer_bytes = 1000) {
    const auto path = folder_.path() / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    Result<std::unique_ptr<ByteStream>> stream = ByteStream::open(path);
    EXPECT_TRUE(stream.ok());
    Content out;
    std::vector<std::byte> buffer(buffer_bytes);
    while (true) {
      const Result<std::size_t> n = (*stream)->read(buffer);
      EXPECT_TRUE(n.ok());
      if (!n.ok() || *n == 0) break;
      out.text.append(reinterpret_cast<const char*>(buffer.data()), *n);
    }
    out.condition = (*stream)->condition();
    out.compression = (*stream)->compression();
    EXPECT_EQ((*stream)->bytes_given(), out.text.size());
    return out;
  }

  static std::string long_text() {
    std::string text;
    for (int i = 0; text.size() < 700'000; ++i) text += format("{{\"ph\": \"X\", \"ts\": {}}},\n", i * 7919);
    return text;
  }

  test::TempDir folder_;
};

using Condition = ByteStream::Condition;

TEST_F(ByteStreams, PlainGzipAndZstdGiveTheSameText) {
  const std::string text = long_text();
  for (const auto& [bytes, compression] :
       {std::pair{text, Compression::kNone}, std::pair{gzip(text), Compression::kGzip},
        std::pair{zstd(text), Compression::kZstd}}) {
    for (const std::size_t buffer : {std::size_t{1} << 20, std::size_t{4096}, std::size_t{977}}) {
      const Content found = content(bytes, buffer);
      EXPECT_EQ(found.text, text);
      EXPECT_EQ(found.condition, Condition::kSound);
      EXPECT_EQ(found.compression, compression);
    }
  }
}

TEST_F(ByteStreams, SeveralMembersAreOneTextAndPaddingIsNone) {
  EXPECT_EQ(content(gzip("one ") + gzip("") + gzip("two")).text, "one two");
  EXPECT_EQ(content(zstd("one ") + zstd("two")).text, "one two");
  const Content padded = content(gzip("one") + std::string(512, '\0'));
  EXPECT_EQ(padded.text, "one");
  EXPECT_EQ(padded.condition, Condition::kSound);
}

TEST_F(ByteStreams, ACutStreamGivesWhatCameBeforeAndSaysSo) {
  const std::string text = long_text();
  for (const std::string& bytes : {gzip(text), zstd(text)}) {
    const Content cut = content(std::string_view(bytes).substr(0, bytes.size() / 2));
    EXPECT_EQ(cut.condition, Condition::kTruncated);
    EXPECT_GT(cut.text.size(), text.size() / 4);
    EXPECT_TRUE(text.starts_with(cut.text));
  }
  EXPECT_EQ(content(gzip("one") + gzip(text).substr(0, 3)).condition, Condition::kTruncated);
  EXPECT_EQ(content(std::string_view("\x1F\x8B", 2)).condition, Condition::kTruncated);
}

TEST_F(ByteStreams, ADamagedStreamEndsThere) {
  const std::string text = long_text();
  for (std::string bytes : {gzip(text), zstd(text)}) {
    for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 64; ++i)
      bytes[i] = static_cast<char>(bytes[i] ^ 0x5A);
    const Content found = content(bytes);
    EXPECT_EQ(found.condition, Condition::kDamaged);
    EXPECT_LT(found.text.size(), text.size() + 1);
  }
}

TEST_F(ByteStreams, WhatIsNoFileIsNamed) {
  EXPECT_EQ(ByteStream::open(folder_.path()).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(ByteStream::open(folder_.path() / "none").error().code, ErrorCode::kNotFound);
}

TEST(CompressionSuffix, IsLeftOut) {
  EXPECT_EQ(without_compression_suffix("a.b.json.gz"), "a.b.json");
  EXPECT_EQ(without_compression_suffix("a.csv.zst"), "a.csv");
  EXPECT_EQ(without_compression_suffix("a.csv"), "a.csv");
  EXPECT_EQ(without_compression_suffix(".gz"), ".gz");
}

}  // namespace
}  // namespace hotlap
