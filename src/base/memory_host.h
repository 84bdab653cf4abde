#pragma once
// A machine whose files are texts in memory: what was copied off another machine is read with the code that reads this
// one. Each file is an anonymous file of the kernel's, so that all that opens paths works. Files never go away; an
// empty one gives what an empty file of the kernel would. Not thread-safe: one owner.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/host.h"
#include "base/result.h"

namespace hotlap {

class MemoryHost final : public Host {
 public:
  MemoryHost() = default;
  MemoryHost(const MemoryHost&) = delete;
  MemoryHost& operator=(const MemoryHost&) = delete;
  ~MemoryHost() override;

  // Makes the file or replaces what is in it; a KeptFile that is open sees it. kIo: no memory or no descriptors left.
  Result<void> write(std::string_view absolute, std::string_view text);
  void set_time(std::int64_t mono_ns) { mono_ns_ = mono_ns; }

  // Of what was not written: a path at which there is nothing, whatever this machine has.
  std::string resolve(std::string_view absolute) const override;
  std::string library(std::string_view /*name*/) const override { return {}; }
  std::int64_t mono_ns() const override { return mono_ns_; }
  Result<FilesystemUsage> filesystem_usage(std::string_view mount_point) const override;
  std::int64_t clock_ticks_per_s() const override { return 100; }  // of every machine that hotlap is built for
  std::uint64_t page_bytes() const override { return 4096; }
  std::uint32_t user_id() const override { return 0; }
  Result<std::uint64_t> process_cpu_ns(std::int32_t pid) const override;

 private:
  std::map<std::string, int, std::less<>> descriptors_;  // by path
  std::int64_t mono_ns_ = 0;
};

}  // namespace hotlap
