#include "ingest/trace_file_name.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

int rank(std::string_view name) { return read_trace_file_name(name).rank.value_or(-1); }
int pid(std::string_view name) { return read_trace_file_name(name).pid.value_or(-1); }

TEST(TraceFileName, RankWhereItIsNamed) {
  EXPECT_EQ(rank("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"), 34);
  EXPECT_EQ(rank("rank3.json"), 3);
  EXPECT_EQ(rank("trace_rank_12.json.gz"), 12);
  EXPECT_EQ(rank("pytorch-Rank7_step20.json.zst"), 7);
  EXPECT_EQ(rank("sampled_rank-0.json"), 0);
  EXPECT_EQ(rank("rank=5.trace.json"), 5);
  EXPECT_EQ(rank("worker0.1623143089861.pt.trace.json"), 0);
  EXPECT_EQ(rank("worker0.pt.trace.json.gz"), 0);
  EXPECT_EQ(rank("worker-11.pt.trace.json"), 11);
}

TEST(TraceFileName, HostAndProcessOfThePyTorchDefault) {
  EXPECT_EQ(pid("a.b.c_123.1676.pt.trace.json"), 123);
  EXPECT_EQ(read_trace_file_name("a.b.c_123.1676.pt.trace.json").worker, "a.b.c_123");
  // A worker node of a cluster is a host.
  EXPECT_EQ(rank("worker-3_4711.1676543210123.pt.trace.json.gz"), -1);
  EXPECT_EQ(pid("worker-3_4711.1676543210123.pt.trace.json.gz"), 4711);
}

TEST(TraceFileName, WhatOnlyLooksLikeOneIsNone) {
  EXPECT_EQ(rank("franks3.json"), -1);
  EXPECT_EQ(rank("rank.json"), -1);
  EXPECT_EQ(rank("rank99999999999.json"), -1);
  EXPECT_EQ(rank("trace.json"), -1);
  EXPECT_EQ(rank("worker_log.json"), -1);
  EXPECT_EQ(rank(""), -1);
}

}  // namespace
}  // namespace hotlap
