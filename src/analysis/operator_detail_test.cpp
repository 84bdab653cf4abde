// What operators compute, by their shapes, and the tables of operators by shape and stack.
#include "analysis/operator_detail.h"

#include <gtest/gtest.h>

#include <string>

#include "support/fake_trace.h"

namespace hotlap {
namespace {

// -1: not known.
double flops(std::string_view name, std::string_view shapes, std::string_view values = "[]") {
  const std::string text =
      R"({"Input Dims":)" + std::string(shapes) + R"(,"Concrete Inputs":)" + std::string(values) + "}";
  return flops_of(name, parse_operator_detail(text)).value_or(-1);
}

TEST(Flops, OfMatrixProducts) {
  EXPECT_DOUBLE_EQ(flops("aten::mm", "[[2, 3], [3, 4]]"), 48);
  EXPECT_DOUBLE_EQ(flops("aten::bmm", "[[5, 2, 3], [5, 3, 4]]"), 240);
  EXPECT_DOUBLE_EQ(flops("aten::addmm", "[[4], [2, 3], [3, 4], [], []]"), 48);
  EXPECT_DOUBLE_EQ(flops("aten::baddbmm", "[[5, 2, 4], [5, 2, 3], [5, 3, 4]]"), 240);
  EXPECT_DOUBLE_EQ(flops("aten::linear", "[[7, 2, 3], [4, 3], [4]]"), 2 * 7 * 2 * 3 * 4);
  EXPECT_DOUBLE_EQ(flops("aten::matmul", "[[2, 3], [3, 4]]"), 48);
  EXPECT_DOUBLE_EQ(flops("aten::matmul", "[[3], [3]]"), 6);
  EXPECT_DOUBLE_EQ(flops("aten::matmul", "[[6, 1, 2, 3], [5, 3, 4]]"), 6 * 5 * 48);
  EXPECT_DOUBLE_EQ(flops("aten::matmul", "[[6, 2, 3], [3]]"), 6 * 12);
  EXPECT_DOUBLE_EQ(flops("aten::mm", "[[0, 3], [3, 4]]"), 0);
}

TEST(Flops, OfConvolutions) {
  // 64 outputs of 112 x 112 from 3 inputs of 224 x 224, kernel 7, stride 2, padding 3, for 8 images.
  const double first = 2.0 * 8 * 64 * 112 * 112 * 3 * 7 * 7;
  EXPECT_DOUBLE_EQ(flops("aten::conv2d", "[[8, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], []]",
                         R"(["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "1"])"),
                   first);
  EXPECT_DOUBLE_EQ(flops("aten::cudnn_convolution", "[[8, 3, 224, 224], [64, 3, 7, 7]]",
                         R"(["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"])"),
                   first);
  EXPECT_DOUBLE_EQ(flops("aten::miopen_convolution", "[[8, 3, 224, 224], [64, 3, 7, 7], []]",
                         R"(["", "", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"])"),
                   first);
  // Of two groups each output sees half of the inputs: that is how the weights are shaped.
  EXPECT_DOUBLE_EQ(flops("aten::conv1d", "[[1, 4, 10], [6, 2, 3], []]", R"(["", "", "", "[1]", "[0]", "[1]", "2"])"),
                   2.0 * 6 * 8 * 2 * 3);
  EXPECT_DOUBLE_EQ(flops("aten::convolution", "[[1, 4, 5, 5], [4, 6, 2, 2], []]",
                         R"(["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"])"),
                   2.0 * 4 * 25 * 6 * 4);
  const auto backward = [](std::string_view mask) {
    return flops(
        "aten::convolution_backward", "[[10, 8, 7, 7], [10, 4, 7, 7], [8, 4, 3, 3]]",
        R"(["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", ")" + std::string(mask) + R"("])");
  };
  const double forward = 2.0 * 10 * 8 * 49 * 4 * 9;
  EXPECT_DOUBLE_EQ(backward("[True, True, False]"), 2 * forward);
  EXPECT_DOUBLE_EQ(backward("[False, True, True]"), forward);
}

TEST(Flops, OfAttentionAreHalfWhereItIsCausal) {
  const double whole = 2.0 * 2 * 8 * 100 * 50 * (64 + 32);
  constexpr std::string_view kShapes = "[[2, 8, 100, 64], [2, 8, 50, 64], [2, 8, 50, 32], [], [], [], []]";
  const auto with = [&](std::string_view causal) {
    return flops("aten::scaled_dot_product_attention", kShapes,
                 R"(["", "", "", "", "0.", ")" + std::string(causal) + R"(", "0.125"])");
  };
  EXPECT_DOUBLE_EQ(with("False"), whole);
  EXPECT_DOUBLE_EQ(with("True"), whole / 2);
  EXPECT_DOUBLE_EQ(with(""), -1);
  // Its own order, and sequences that are packed together: their lengths are no shape.
  constexpr std::string_view kValues = R"(["", "", "", "", "", "100", "50", "0.", "False"])";
  EXPECT_DOUBLE_EQ(
      flops("aten::_flash_attention_forward", "[[2, 100, 8, 64], [2, 50, 8, 64], [2, 50, 8, 32], [], []]", kValues),
      whole);
  EXPECT_DOUBLE_EQ(
      flops("aten::_flash_attention_forward", "[[2, 100, 8, 64], [2, 50, 8, 64], [2, 50, 8, 32], [3], [3]]", kValues),
      -1);
}

TEST(Flops, AreNotKnownWhereTheShapesDoNotSay) {
  EXPECT_DOUBLE_EQ(flops("aten::relu", "[[2, 3]]"), -1);
  EXPECT_DOUBLE_EQ(flops("aten::mm", "[[2, 3]]"), -1);
  EXPECT_DOUBLE_EQ(flops("aten::mm", "[[2, 3], [4, 5]]"), -1);
  EXPECT_DOUBLE_EQ(flops("aten::mm", "[[2, -3], [-3, 4]]"), -1);
  EXPECT_DOUBLE_EQ(flops("aten::mm", "[[9000000000, 9000000000], [9000000000, 9000000000]]"), -1);
  EXPECT_DOUBLE_EQ(flops("aten::conv2d", "[[8, 3, 224, 224], [64, 3, 7, 7]]"), -1);  // no stride
  EXPECT_DOUBLE_EQ(
      flops("aten::conv2d", "[[8, 3, 2, 2], [64, 3, 7, 7]]", R"(["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"])"), -1);
  EXPECT_FALSE(flops_of("aten::mm", parse_operator_detail("no JSON")).has_value());
  EXPECT_FALSE(flops_of("aten::mm", parse_operator_detail("[]")).has_value());
}

TEST(CollectiveDetail, SaysWhatTheTraceSays) {
  const CollectiveDetail told = parse_collective_detail(
      R"({"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":2,"dtype":"BFloat16",
          "Process Group Name":"0","Process Group Description":"default_pg","Process Group Ranks":"[0, 1]","Seq":17})");
  EXPECT_EQ(told.name, "allreduce");
  EXPECT_EQ(told.process_group, "0");
  EXPECT_EQ(told.ranks, "[0, 1]");
  EXPECT_EQ(told.sequence, 17);
  EXPECT_EQ(told.group_size, 2);
  EXPECT_EQ(told.bytes(), 2000);
  const CollectiveDetail none = parse_collective_detail(R"({"dtype":"Quaternion","In msg nelems":3})");
  EXPECT_EQ(none.bytes(), -1);
  EXPECT_EQ(none.group_size, -1);
}

// Two shapes of one operator, called from two places; each launches a kernel.
TEST(DetailedOperators, AddUpByShapeAndByStack) {
  FakeTrace trace;
  const auto call = [&](std::string_view shapes, std::string_view stack, std::int64_t at, std::int64_t kernel_us) {
    trace.add(SpanKind::kOperator, "aten::linear", at, 120).value_a = at;
    Span& mm = trace.add(SpanKind::kOperator, "aten::mm", at + 10, 100);
    mm.value_a = at + 1;
    mm.detail = trace.id_of(R"({"Input Dims":)" + std::string(shapes) +
                            R"(,"Input type":["float","float"],"Call stack":")" + std::string(stack) + "\"}");
    Span& kernel = trace.add(SpanKind::kKernel, "sgemm", at + 50, kernel_us, 7);
    kernel.value_b = at + 1;
  };
  call("[[200, 300], [300, 400]]", "a.py(1)", 1000, 50);
  call("[[200, 300], [300, 400]]", "a.py(2)", 2000, 70);
  call("[[1, 300], [300, 400]]", "a.py(2)", 3000, 5);
  const FactTable facts = trace.facts("operators");
  const auto shapes = facts.all("operators.shape");
  ASSERT_EQ(shapes.size(), 2U);
  const Fact& large = *shapes[0];
  EXPECT_EQ(large.text("shapes"), "[[200, 300], [300, 400]]");
  EXPECT_EQ(large.text("types"), "float, float");
  EXPECT_DOUBLE_EQ(large.number("calls").value_or(-1), 2);
  EXPECT_DOUBLE_EQ(large.number("self_ms").value_or(-1), 0.2);
  EXPECT_DOUBLE_EQ(large.number("device_ms").value_or(-1), 0.12);
  EXPECT_DOUBLE_EQ(large.number("gflop").value_or(-1), 2 * 0.048);
  EXPECT_NEAR(large.number("tflops").value_or(-1), 0.096e9 / 0.12e-3 / 1e12, 1e-9);
  const auto stacks = facts.all("operators.stack");
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(stacks[0]->text("stack"), "a.py(2)");
  EXPECT_DOUBLE_EQ(stacks[0]->number("calls").value_or(-1), 2);
  const Fact* sum = facts.find("operators.flops");
  ASSERT_NE(sum, nullptr);
  EXPECT_DOUBLE_EQ(sum->number("device_ms").value_or(-1), 0.125);
  EXPECT_FALSE(sum->number("peak_pct").has_value());  // the trace does not say what GPU it was
}

}  // namespace
}  // namespace hotlap
