#include "ingest/trace_names.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

TEST(PipelineNames, AStageIsReadInEverySpelling) {
  for (const char* name : {"PP rank 3, TP rank 0, compute", "TP rank 1, PP rank 3", "pp_rank[3]", "PP3 forward", "pp:3",
                           "pipeline stage 3", "Pipeline-rank #3"}) {
    EXPECT_EQ(pipeline_stage_in_name(name), 3) << name;
  }
  EXPECT_EQ(pipeline_stage_in_name("PP rank 0"), 0);
}

TEST(PipelineNames, WhatNamesNoStageIsNone) {
  for (const char* name : {"", "pp", "PP rank", "TP rank 3", "thread 3 (python)", "cpp 3", "apps 3", "pp-comm 3",
                           "input pipeline", "pipeline of 3", "PP rank 99999999999", "stream 7"}) {
    EXPECT_EQ(pipeline_stage_in_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace hotlap
