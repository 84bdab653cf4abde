#include "ingest/json_objects.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/format.h"

namespace hotlap {
namespace {

using Objects = std::vector<std::string>;

// "offset:text", with a mark for what is not whole.
Objects cut(std::string_view content, std::size_t chunk_bytes, std::size_t object_bytes_max = 1000) {
  Objects objects;
  JsonObjectCutter cutter(object_bytes_max);
  const auto take = [&](const JsonObjectText& object) {
    objects.push_back(format("{}:{}{}", object.offset, object.text, object.is_whole ? "" : " (damaged)"));
  };
  for (std::size_t at = 0; at < content.size(); at += chunk_bytes) {
    cutter.push(as_bytes(content.substr(at, chunk_bytes)), take);
  }
  cutter.finish(take);
  EXPECT_EQ(cutter.bytes(), content.size());
  return objects;
}

Objects cut_anyhow(std::string_view content, std::size_t object_bytes_max = 1000) {
  const Objects whole = cut(content, content.size() + 1, object_bytes_max);
  EXPECT_EQ(cut(content, 1, object_bytes_max), whole);
  EXPECT_EQ(cut(content, 7, object_bytes_max), whole);
  return whole;
}

TEST(JsonObjectCutter, LinesAndListsGiveTheirObjects) {
  EXPECT_EQ(cut_anyhow("{\"a\":1}\n{\"b\":[{},{\"c\":\"}{\"}]}"),
            (Objects{"0:{\"a\":1}", "8:{\"b\":[{},{\"c\":\"}{\"}]}"}));
  EXPECT_EQ(cut_anyhow("[\n{\"a\":1},\n{\"b\":2}\n]\n"), (Objects{"2:{\"a\":1}", "11:{\"b\":2}"}));
  EXPECT_EQ(cut_anyhow("[{\"a\":\"\\\"{\"},\n{\n  \"b\": {\n    \"c\": 2}}"),
            (Objects{"1:{\"a\":\"\\\"{\"}", "14:{\n  \"b\": {\n    \"c\": 2}}"}));
}

TEST(JsonObjectCutter, AnObjectThatIsCutOffCostsItself) {
  EXPECT_EQ(cut_anyhow("{\"a\":1,\"b\":\n{\"a\":2}\n{\"a\":\"x\n{\"a\":3}\n{\"a\": 4\n{\"a\":5}\n"),
            (Objects{"0:{\"a\":1,\"b\":\n{\"a\":2}\n (damaged)", "20:{\"a\":\"x (damaged)", "28:{\"a\":3}",
                     "36:{\"a\": 4\n (damaged)", "44:{\"a\":5}"}));
  EXPECT_EQ(cut_anyhow("{\"a\":1}\n{\"a\""), (Objects{"0:{\"a\":1}", "8:{\"a\" (damaged)"}));
  EXPECT_EQ(cut_anyhow("{\"a\":[1}\n{\"b\":2}"), (Objects{"0:{\"a\":[1 (damaged)", "9:{\"b\":2}"}));
}

TEST(JsonObjectCutter, WhatIsNoObjectIsOneDamageALine) {
  EXPECT_EQ(cut_anyhow("hello world\n{\"a\":1} tail\n{\"b\":2}"),
            (Objects{"0:hello world (damaged)", "12:{\"a\":1}", "20:tail (damaged)", "25:{\"b\":2}"}));
}

TEST(JsonObjectCutter, MemoryAndDepthAreBounded) {
  EXPECT_EQ(cut_anyhow("{\"a\":\"" + std::string(5000, 'x') + "\"}\n{\"b\":2}", 20),
            (Objects{"0:{\"a\":\"xxxxxxxxxxxxxx (damaged)", "5009:{\"b\":2}"}));
  const Objects deep = cut_anyhow("{\"a\":" + std::string(5000, '[') + "\n{\"b\":2}");
  ASSERT_EQ(deep.size(), 2U);
  EXPECT_EQ(deep[1], "5006:{\"b\":2}");
}

}  // namespace
}  // namespace hotlap
