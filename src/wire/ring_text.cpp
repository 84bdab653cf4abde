#include "wire/ring_text.h"

#include "base/format.h"
#include "base/text.h"

namespace hotlap {

void RecordText::on_span(const Span& s, std::uint8_t flags) {
  out_ += format("span kind={} flags={} start={} duration={} thread={} name={} step={} a={} b={}\n",
                 static_cast<int>(s.kind), flags, s.start_ns, s.duration_ns, s.thread, s.name, s.step, s.value_a,
                 s.value_b);
}
void RecordText::on_name(std::uint32_t id, std::string_view text) {
  out_ += format("name id={} text={}\n", id, strip_control(to_valid_utf8(text)));
}
void RecordText::on_info(std::int64_t t_ns, std::string_view key, std::string_view json) {
  out_ +=
      format("info t={} key={} json={}\n", t_ns, strip_control(to_valid_utf8(key)), strip_control(to_valid_utf8(json)));
}
void RecordText::on_count(std::uint32_t name, std::int64_t t_ns, double value, std::int64_t step, std::uint8_t flags) {
  out_ += format("count name={} flags={} t={} value={:.6f} step={}\n", name, flags, t_ns, value, step);
}
void RecordText::on_phase(std::int64_t t_ns, std::uint32_t phase, std::int64_t step) {
  out_ += format("phase t={} phase={} step={}\n", t_ns, phase, step);
}
void RecordText::on_process(const ProcessRecord& p) {
  out_ += format("process t={} role={} rank={} local_rank={} world_size={} worker={} attempt={} pid={} parent={}\n",
                 p.t_ns, p.role, p.rank, p.local_rank, p.world_size, p.worker_id, p.attempt, p.pid, p.parent_pid);
}
void RecordText::on_end(std::int64_t t_ns, std::uint32_t reason) {
  out_ += format("end t={} reason={}\n", t_ns, reason);
}

}  // namespace hotlap
