#pragma once
// Records as lines of text, the same as python/src/hotlap/_wire.py prints: for golden files and `hotlap doctor`.
#include <string>
#include <string_view>

#include "wire/ring_reader.h"

namespace hotlap {

// Appends one line per record to `out`, which must outlive it. Text is cleaned of control characters.
class RecordText final : public RecordVisitor {
 public:
  explicit RecordText(std::string& out) : out_(out) {}
  void on_span(const Span& span, std::uint8_t flags) override;
  void on_name(std::uint32_t id, std::string_view text_untrusted) override;
  void on_info(std::int64_t t_ns, std::string_view key_untrusted, std::string_view json_untrusted) override;
  void on_count(std::uint32_t name, std::int64_t t_ns, double value, std::int64_t step, std::uint8_t flags) override;
  void on_phase(std::int64_t t_ns, std::uint32_t phase, std::int64_t step) override;
  void on_process(const ProcessRecord& process) override;
  void on_end(std::int64_t t_ns, std::uint32_t reason) override;

 private:
  std::string& out_;
};

}  // namespace hotlap
