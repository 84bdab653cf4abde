#include "ingest/kept_arguments.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

TEST(KeptArguments, TheStandardOnesTheOnesAskedForAllOrNone) {
  const KeptArguments& standard = KeptArguments::standard();
  for (const std::string_view name : standard_arguments()) EXPECT_TRUE(standard.holds(name)) << name;
  EXPECT_FALSE(standard.holds("Ev Idx"));
  EXPECT_FALSE(standard.holds("Input Dim"));
  const KeptArguments more = KeptArguments::of(" Ev Idx, Module Hierarchy");
  EXPECT_TRUE(more.holds("Ev Idx"));
  EXPECT_TRUE(more.holds("Module Hierarchy"));
  EXPECT_TRUE(more.holds("Input Dims"));
  EXPECT_TRUE(KeptArguments::of("all").holds("anything"));
  EXPECT_FALSE(KeptArguments::of("none").holds("Input Dims"));
}

TEST(KeptArguments, AreMadeToAnObjectWithoutThoseBetweenThem) {
  const KeptArguments& kept = KeptArguments::standard();
  EXPECT_EQ(
      kept.as_object(R"("Input type": ["float", ""], "Input Strides": [[4, 1], []], "Input Dims" : [[2, 4], []])"),
      R"({"Input type":["float", ""],"Input Dims":[[2, 4], []]})");
  EXPECT_EQ(kept.as_object(R"("Group size": 2, "Ev Idx": 7, "Seq":12)"), R"({"Group size":2,"Seq":12})");
  EXPECT_EQ(kept.as_object(R"("Ev Idx": 7)"), "");
  EXPECT_EQ(KeptArguments::of("all").as_object(R"("Ev Idx": 7, "External id": 3, "stream": 7)"), R"({"Ev Idx":7})");
}

TEST(KeptArguments, WhatIsNoJsonIsNone) {
  const KeptArguments& kept = KeptArguments::standard();
  for (const char* text : {R"("Seq": nan)", R"("Seq": )", R"("Seq")", R"("Seq": [1, 2)", "\"dtype\": \"a\nb\"", "x", "",
                           R"("Input Dims": [[1}, {2]])"}) {
    EXPECT_EQ(kept.as_object(text), "") << text;
  }
}

}  // namespace
}  // namespace hotlap
