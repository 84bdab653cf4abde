#include "model/phase_names.h"

#include <gtest/gtest.h>

#include <string>

namespace hotlap {
namespace {

TEST(PhaseName, ComesFromTheFirstWordUnlessTheNameCommunicates) {
  EXPECT_EQ(phase_name("forward-compute"), PhaseName::kForward);
  EXPECT_EQ(phase_name("Forward"), PhaseName::kForward);
  EXPECT_EQ(phase_name("fwd_step"), PhaseName::kForward);
  EXPECT_EQ(phase_name("backward-step"), PhaseName::kBackward);
  EXPECT_EQ(phase_name("optimizer-clip-main-grad"), PhaseName::kOptimizer);
  EXPECT_EQ(phase_name("data_loading"), PhaseName::kDataWait);
  EXPECT_EQ(phase_name("dataloader"), PhaseName::kDataWait);
  EXPECT_EQ(phase_name("backward-send"), PhaseName::kCommunication);
  EXPECT_EQ(phase_name("embedding-grads-all-reduce"), PhaseName::kCommunication);
  EXPECT_EQ(phase_name("AddmmBackward0"), PhaseName::kAutograd);
  EXPECT_EQ(phase_name("torch::autograd::AccumulateGrad"), PhaseName::kAutograd);
  for (const char* other : {"aten::forward", "Optimizer.step#SGD.step", "data_ptr", "forwarding", "f(x)", ""}) {
    EXPECT_EQ(phase_name(other), PhaseName::kNone) << other;
  }
}

TEST(PhaseName, IsThatOfTheLabelsThatProgramsPush) {
  for (const char* wait : {"data", "Data", "data loading", "dataload", "load_batch", "next_batch", "get batch",
                           "fetch_data", "batch-generator", "IteratorGetNext", "IteratorGetNextAsOptional",
                           "IteratorGetNextOp::DoCompute", "infeed.1", "$loader.py:44 next_batch"}) {
    EXPECT_EQ(phase_name(wait), PhaseName::kDataWait) << wait;
  }
  EXPECT_EQ(phase_name("optimizer.step"), PhaseName::kOptimizer);
  EXPECT_EQ(phase_name("forward pass"), PhaseName::kForward);
  for (const char* other : {"data_parallel", "database", "batch", "batch_norm", "load", "get_item", "next",
                            "load_state_dict", "Iterator::Prefetch", "MakeIterator", "$train.py:10 main"}) {
    EXPECT_EQ(phase_name(other), PhaseName::kNone) << other;
  }
}

// The words of a label, "|" and the number; empty: it names no step.
std::string step_said(std::string_view name) {
  const auto label = step_label(name);
  return label ? label->words + "|" + std::to_string(label->number) : std::string{};
}

TEST(StepLabel, IsThatOfRangesAroundASingleStep) {
  EXPECT_EQ(step_said("step 5"), "step|5");
  EXPECT_EQ(step_said("Step_5"), "step|5");
  EXPECT_EQ(step_said("step#12"), "step|12");
  EXPECT_EQ(step_said("step5"), "step|5");
  EXPECT_EQ(step_said("iteration 5"), "iteration|5");
  EXPECT_EQ(step_said("iter: 7"), "iter|7");
  EXPECT_EQ(step_said("Iteration [3/100]"), "iteration|3");
  EXPECT_EQ(step_said("global_step=5"), "global step|5");
  EXPECT_EQ(step_said("train_step"), "train step|-1");
  EXPECT_EQ(step_said("epoch 2 step 17"), "epoch step|17");
  EXPECT_EQ(step_said("batch 9"), "batch|9");
  for (const char* other : {"optimizer.step", "val_step 3", "eval step", "step size", "epoch 3", "aten::step",
                            "stepping", "batch_norm", "train", "next_batch", "microbatch 3", "step(x)", "5", ""}) {
    EXPECT_EQ(step_said(other), "") << other;
  }
}

}  // namespace
}  // namespace hotlap
