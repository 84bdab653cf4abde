#include "view/job_hours.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

Fact cores(std::string node, double usable) {
  Fact fact{.kind = "core_use.summary"};
  fact.where.node = std::move(node);
  fact.set("usable_cores", usable);
  return fact;
}

Fact gpu(std::string device, std::optional<double> is_of_job, std::string node = "a") {
  Fact fact{.kind = "gpu.use"};
  fact.where.node = std::move(node);
  fact.where.device = std::move(device);
  fact.set("is_of_job", is_of_job);
  return fact;
}

AnalysisDocument hours_of(std::vector<Fact> facts, std::optional<double> duration_s = 7200) {
  FactTable table;
  for (Fact& fact : facts) table.add(std::move(fact));
  AnalysisDocument document;
  document.duration_s = duration_s;
  set_hours(table, document);
  return document;
}

TEST(JobHours, CoresOfEveryNodeCount) {
  EXPECT_EQ(hours_of({cores("a", 4), cores("b", 0.5)}).cpu_hours, 9.0);
  EXPECT_EQ(hours_of({}).cpu_hours, std::nullopt);
  EXPECT_EQ(hours_of({cores("a", 4)}, std::nullopt).cpu_hours, std::nullopt);
}

TEST(JobHours, OnlyGpusOfTheJobCount) {
  EXPECT_EQ(hours_of({gpu("gpu0", 1), gpu("gpu1", 0), gpu("gpu0", 1, "b")}).gpu_hours, 4.0);
  EXPECT_EQ(hours_of({gpu("gpu0", 0)}).gpu_hours, 0.0);
}

TEST(JobHours, WhatIsNotKnownOfOneIsNotKnown) {
  EXPECT_EQ(hours_of({}).gpu_hours, std::nullopt);
  EXPECT_EQ(hours_of({gpu("gpu0", 1), gpu("gpu1", std::nullopt)}).gpu_hours, std::nullopt);
}

// Parts of one GPU are lent apart; the whole is none besides.
TEST(JobHours, PartsOfAGpuCountForIt) {
  EXPECT_EQ(hours_of({gpu("gpu0", std::nullopt), gpu("gpu0/mig1", 1), gpu("gpu0/mig2", 0), gpu("gpu01", 0)}).gpu_hours,
            2.0);
}

}  // namespace
}  // namespace hotlap
