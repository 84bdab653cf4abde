#include "ingest/json_scan.h"

#include <gtest/gtest.h>

#include <string>

namespace hotlap::json {
namespace {

// Where skip_value() leaves off, or why it did not.
std::string skipped(std::string_view text) {
  const char* at = text.data();
  switch (skip_value(at, text.data() + text.size())) {
    case Scan::kOk: return std::string(at, text.data() + text.size());
    case Scan::kCutOff: return "cut off";
    case Scan::kWrong: return "wrong";
  }
  return "?";
}

TEST(JsonScan, SkipsEveryValueAndNothingMore) {
  EXPECT_EQ(skipped("12,3"), ",3");
  EXPECT_EQ(skipped("nan}"), "}");
  EXPECT_EQ(skipped(R"("a\"b" ,)"), " ,");
  EXPECT_EQ(skipped(R"({"a":[1,{"b":"]}"}],"long text that fills more than one lane": "}}}}}}}}}}}}}}}}"}!)"), "!");
  EXPECT_EQ(skipped("[1,2"), "cut off");
  EXPECT_EQ(skipped(R"("abc)"), "cut off");
  EXPECT_EQ(skipped(R"("abc\)"), "cut off");
  EXPECT_EQ(skipped("}"), "wrong");
}

TEST(JsonScan, ATextEndsAtItsQuoteWhereverThatStands) {
  for (std::size_t n = 0; n < 40; ++n) {
    const std::string text = std::string(n, 'x') + "\"rest";
    const char* at = text.data();
    Text out;
    ASSERT_EQ(scan_text(at, text.data() + text.size(), out), Scan::kOk);
    EXPECT_EQ(out.raw.size(), n);
    EXPECT_EQ(std::string_view(at, 4), "rest");
    EXPECT_FALSE(out.has_escape || out.has_control);
  }
}

TEST(JsonScan, NanosecondsAreExact) {
  EXPECT_EQ(nanoseconds_of_us("1715582400123456.789"), 1'715'582'400'123'456'789);
  EXPECT_EQ(nanoseconds_of_us("9000000000000000"), 9'000'000'000'000'000'000);
  EXPECT_EQ(nanoseconds_of_us("9300000000000000"), std::nullopt);
  EXPECT_EQ(nanoseconds_of_us("99999999999999999999999"), std::nullopt);
  EXPECT_EQ(nanoseconds_of_us("1.9996"), 2'000);
  EXPECT_EQ(nanoseconds_of_us(".5"), 500);
  EXPECT_EQ(nanoseconds_of_us("-"), std::nullopt);
  EXPECT_EQ(nanoseconds_of_us("."), std::nullopt);
  EXPECT_EQ(nanoseconds_of_us("1.2.3"), std::nullopt);
  EXPECT_EQ(nanoseconds_of_us(""), std::nullopt);
}

TEST(JsonScan, WholeNumbers) {
  EXPECT_EQ(whole_number("-12"), -12);
  EXPECT_EQ(whole_number("12.0"), 12);
  EXPECT_EQ(whole_number("12.5"), std::nullopt);
  EXPECT_EQ(whole_number("18446744073709551615"), -1);  // all bits set: how 64-bit identifiers are printed
  EXPECT_EQ(whole_number("18446744073709551616"), std::nullopt);
  EXPECT_EQ(whole_number("x"), std::nullopt);
}

TEST(JsonScan, CleansTextAndSaysWhetherItHadTo) {
  const auto clean = [](std::string_view raw) {
    std::string out;
    const bool is_sound = append_clean({.raw = raw}, out);
    return out + (is_sound ? "" : " (mended)");
  };
  EXPECT_EQ(clean("plain"), "plain");
  EXPECT_EQ(clean(R"(a\"b\\c\/d\u0041\ud83d\ude00)"), "a\"b\\c/dA\xF0\x9F\x98\x80");
  EXPECT_EQ(clean(R"(\ud83d alone)"), "\\ud83d alone (mended)");
  EXPECT_EQ(clean(R"(\q)"), "\\q (mended)");
  EXPECT_EQ(clean("a\x01"
                  "b"),
            "a b (mended)");
  EXPECT_EQ(clean("\xFF"), "\xEF\xBF\xBD (mended)");
}

}  // namespace
}  // namespace hotlap::json
