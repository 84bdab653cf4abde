#include "report/tensorboard_events.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace hotlap {
namespace {

TEST(TensorboardEvents, Castagnoli) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE306'9283U);
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8A91'36AAU);  // RFC 3720, B.4
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4U];
    out += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

// As TensorFlow's own writer has it for wall_time 0, but for the length and the sums around.
TEST(TensorboardEvents, RecordsAreFramedAndHoldTheirFields) {
  std::ostringstream out;
  TensorboardEvents events(out, 0);
  const std::string head = out.str();
  EXPECT_EQ(hex(head.substr(0, 8)), "1800000000000000");
  EXPECT_EQ(hex(head.substr(12, 24)), "0900000000000000001a0d627261696e2e4576656e743a32");
  EXPECT_EQ(head.size(), 8U + 4 + 24 + 4);
  events.add_scalar("a", 3, 0, 1.0F);
  EXPECT_EQ(hex(out.str().substr(head.size() + 12, 22)),
            "0900000000000000001003"
            "2a0a0a08"
            "0a0161"
            "150000"
            "80");
}

}  // namespace
}  // namespace hotlap
