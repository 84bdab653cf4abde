// What the reader tells of damaged and of boundless documents must not depend on where its pieces end.
#include "ingest/trace_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/format.h"

namespace hotlap {
namespace {

class Transcript final : public TraceReader::Handler {
 public:
  void on_document() override { text += "document\n"; }
  void on_event(const TraceEvent& event, std::int64_t offset) override {
    text += format("event {}@{}\n", event.name.raw.substr(0, 20), offset);
  }
  void on_member(std::string_view key, std::string_view value) override {
    text += format("member {} {}\n", key.substr(0, 20), value.size());
  }
  void on_loss(std::string_view counter, std::int64_t offset) override { text += format("{}@{}\n", counter, offset); }
  std::string text;
};

std::string told(std::string_view text, std::size_t piece_bytes = SIZE_MAX) {
  Transcript transcript;
  TraceReader reader(transcript);
  while (!text.empty()) {
    const std::size_t n = std::min(piece_bytes, text.size());
    reader.push(as_bytes(text.substr(0, n)));
    text.remove_prefix(n);
  }
  reader.finish();
  return transcript.text;
}

constexpr std::string_view kEvent = R"({"ph":"X","name":"a","ts":1,"dur":1})";

class Damage : public testing::TestWithParam<std::string_view> {};

TEST_P(Damage, IsToldAtTheSamePlaceWhereverPiecesEnd) {
  const std::string_view text = GetParam();
  const std::string whole = told(text);
  EXPECT_NE(whole.find("ingest."), std::string::npos) << whole;
  for (std::size_t piece = 1; piece < text.size(); ++piece) ASSERT_EQ(told(text, piece), whole) << piece;
}

INSTANTIATE_TEST_SUITE_P(
    TraceReader, Damage,
    testing::Values(
        // Between the documents of a list: the next one begins inside of what cannot be read, or the list ends there.
        R"([{"v": 1, "traceEvents": []} oops [{"id" "x", "name": "V"}], "traceEvents": [{"ph": "X", "name": "a"}]}])",
        R"([{"v": 1, "traceEvents": []}, oops] , "a": 1, [{"ph": "X", "name": "a"}])",
        R"([{"v": 1, "traceEvents": []}, {oops ] "a": 1} ] more)",
        // Among the members of one document.
        R"({"a"ph": "X", "b": ], "c": }, "d": 1} , {"traceEvents": [{"ph": "X", "name": "a"}]})",
        R"({"a": , "b" 2 ] { "c": "d", "traceEvents": [{"ph": "X", "name": "a"}] oops })",
        // A list inside of a damaged event ends in front of what is no member.
        R"([{"ph": "X", "name": "a, "b": [",]}abcdefgh, "ts": 1}, {"ph": "X", "name": "z", "ts": 1}])",
        R"([{"ph": "X", "na
{ "ph": "X", "name": "b", "ts": 1}, {"ph": "X", "name": "z", "ts": 1}] trailing)"));

// Whatever is longer than the reader keeps is given up after as many bytes, also where a piece holds all of it.
TEST(TraceReader, WhatIsTooLargeIsTheSameWhereverPiecesEnd) {
  constexpr std::size_t kMember = TraceReader::kMemberBytesMax;
  constexpr std::size_t kLarge = TraceReader::kEventBytesMax;
  const std::string events = format("\"traceEvents\": [{}]", kEvent);
  const std::string key = format("{{\"{}\": 1, {}}}", std::string(kMember + 9, 'k'), events);
  const std::string nest = format("{{\"a\": [\"{}\"], {}}}", std::string(kMember + 9, 'n'), events);
  const std::string token = format("{{\"a\": {}, {}}}", std::string(kMember + 9, '1'), events);
  const std::string blanks = format("{{\"a\" {}: 1, {}}}", std::string(kMember + 9, ' '), events);
  const std::string begin = format("{{{}{}}}", std::string(kLarge + 9, ' '), events);
  const std::string event = format("[{{\"ph\":\"X\",\"name\":\"{}\"}},{}]", std::string(kLarge + 9, 'e'), kEvent);
  const std::string open = format("[{{\"ph\":\"X\",\"name\":\"{},{}]", std::string(kLarge + 9, 'e'), kEvent);
  for (const std::string& text : {key, nest, token, blanks, begin, event, open}) {
    const std::string whole = told(text);
    EXPECT_NE(whole.find("event a@"), std::string::npos) << text.substr(0, 20) << '\n' << whole;
    for (const std::size_t piece : {std::size_t{60'000}, kMember, kMember + 300'000, kLarge + 5})
      EXPECT_EQ(told(text, piece), whole) << text.substr(0, 20) << " in pieces of " << piece;
    // What is kept is bounded, so what is cut off is given up, too.
    const std::string_view cut = std::string_view(text).substr(0, text.size() - events.size() - 4);
    EXPECT_EQ(told(cut, 60'000), told(cut)) << text.substr(0, 20);
  }
}

// A limit is one of bytes: what ends with it is whole, one byte more is not.
TEST(TraceReader, LimitsAreExact) {
  const auto member = [](std::size_t bytes) { return format("{{\"a\": \"{}\"}}", std::string(bytes - 2, 'x')); };
  EXPECT_NE(told(member(TraceReader::kMemberBytesMax)).find("member a"), std::string::npos);
  EXPECT_EQ(told(member(TraceReader::kMemberBytesMax + 1)).find("member a"), std::string::npos);
  const std::string_view frame = R"({"ph":"X","name":""})";
  const auto event = [&](std::size_t bytes) {
    return format("[{{\"ph\":\"X\",\"name\":\"{}\"}}]", std::string(bytes - frame.size(), 'x'));
  };
  EXPECT_NE(told(event(TraceReader::kEventBytesMax)).find("event x"), std::string::npos);
  EXPECT_EQ(told(event(TraceReader::kEventBytesMax + 1)).find("event x"), std::string::npos);
}

}  // namespace
}  // namespace hotlap
