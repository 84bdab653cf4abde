#include "base/memory_host.h"

#include <gtest/gtest.h>

#include <string>

namespace hotlap {
namespace {

TEST(MemoryHost, ItsFilesAreReadAsThoseOfAMachine) {
  MemoryHost host;
  EXPECT_FALSE(host.exists("/proc/stat"));
  EXPECT_EQ(KeptFile::open(host, "/proc/stat").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(host.list("/proc").ok());
  EXPECT_FALSE(host.filesystem_usage("/").ok());
  EXPECT_FALSE(host.process_cpu_ns(1).ok());

  const std::string large(100'000, 'x');
  ASSERT_TRUE(host.write("/proc/stat", large).ok());
  auto file = KeptFile::open(host, "/proc/stat");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->read().value_or({}), large);
  ASSERT_TRUE(host.write("/proc/stat", "short").ok());
  EXPECT_EQ(file->read_record().value_or({}), "short");
  EXPECT_EQ(file->read_list().value_or({}), "short");
  ASSERT_TRUE(host.write("/proc/stat", "").ok());
  EXPECT_EQ(file->read_list().value_or("none"), "");
  EXPECT_EQ(host.read_text("/proc/stat").value_or("none"), "");
  EXPECT_TRUE(host.exists("/proc/stat"));
}

}  // namespace
}  // namespace hotlap
