#include "view/trace_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/format.h"
#include "rules/fact_number.h"
#include "view/analyze.h"

namespace hotlap {
namespace {

constexpr double kChangeMin = 0.05;       // of a row's own time
constexpr double kShareOfAllMin = 0.002;  // of the step, or of the whole trace

// What a fact's times are divided by: the steps of the trace, or nothing.
double steps_of(const FactTable& facts) { return number_in(facts.find("steps.summary"), "count").value_or(0); }

// Of the steps themselves, which facts tell per step already.
std::optional<double> step_ms(const FactTable& facts) { return number_in(facts.find("steps.summary"), "mean_ms"); }

double whole_ms(const FactTable& facts) {
  double most = 0;
  for (const Fact* device : facts.all("device.time")) most = std::max(most, device->number("wall_ms").value_or(0));
  if (most > 0) return most;
  return number_in(facts.find("operators.summary"), "self_ms").value_or(0);
}

struct Row {
  double ms = 0;
  double calls = 0;
};

std::map<std::string, Row> rows_of(const FactTable& facts, std::string_view kind, std::string_view field, double per) {
  std::map<std::string, Row> out;
  for (const Fact* fact : facts.all(kind)) {
    const auto ms = fact->number(field);
    if (!ms) continue;
    Row& row = out[fact->text("name").value_or("")];
    row.ms += *ms / per;
    row.calls += fact->number("calls").value_or(0) / per;
  }
  return out;
}

struct TableDesc {
  std::string_view kind;
  std::string_view title;
  std::string_view field;
  std::string_view summary;  // fact with the number of different ones, and that field; empty: the table is whole
  std::string_view count;
};
constexpr std::array kTables{
    TableDesc{"kernels.sort", "Sorts of kernels", "total_ms", "", ""},
    TableDesc{"kernels.kernel", "Kernels", "total_ms", "kernels.summary", "kernels"},
    TableDesc{"copies.copy", "Copies", "total_ms", "", ""},
    TableDesc{"operators.operator", "Operators, own CPU time", "self_ms", "operators.summary", "operators"},
    TableDesc{"sync.caller", "Waits of the host for the device, in", "total_ms", "", ""},
};

bool is_cut(const FactTable& facts, const TableDesc& desc) {
  if (desc.summary.empty()) return false;
  const auto all = number_in(facts.find(desc.summary), desc.count);
  return all && *all > static_cast<double>(facts.all(desc.kind).size());
}

ComparedTable compare_table(const TableDesc& desc, const TraceSide& before, const TraceSide& after, double per_before,
                            double per_after, double least_ms) {
  ComparedTable out{.kind = std::string(desc.kind), .title = std::string(desc.title), .rows = {}};
  out.is_cut = is_cut(before.facts, desc) || is_cut(after.facts, desc);
  const auto was = rows_of(before.facts, desc.kind, desc.field, per_before);
  const auto is = rows_of(after.facts, desc.kind, desc.field, per_after);
  const auto add = [&](const std::string& name, const Row* a, const Row* b) {
    ComparedRow row{.name = name};
    row.before_ms = a == nullptr ? 0 : a->ms;
    row.after_ms = b == nullptr ? 0 : b->ms;
    row.before_calls = a == nullptr ? 0 : a->calls;
    row.after_calls = b == nullptr ? 0 : b->calls;
    const double size = std::fabs(row.difference_ms());
    if (size < least_ms || size < kChangeMin * std::max(row.before_ms, row.after_ms)) {
      ++out.unchanged;
      return;
    }
    row.change = a == nullptr              ? RowChange::kAdded
                 : b == nullptr            ? RowChange::kGone
                 : row.difference_ms() > 0 ? RowChange::kSlower
                                           : RowChange::kFaster;
    out.rows.push_back(std::move(row));
  };
  for (const auto& [name, row] : was) {
    const auto found = is.find(name);
    add(name, &row, found == is.end() ? nullptr : &found->second);
  }
  for (const auto& [name, row] : is) {
    if (!was.contains(name)) add(name, nullptr, &row);
  }
  std::ranges::stable_sort(out.rows, [](const ComparedRow& a, const ComparedRow& b) {
    return std::fabs(a.difference_ms()) > std::fabs(b.difference_ms());
  });
  return out;
}

// Of all devices together, per step.
std::optional<double> device_ms(const FactTable& facts, std::string_view field, double per) {
  std::optional<double> sum;
  for (const Fact* device : facts.all("device.time")) {
    if (const auto ms = device->number(field)) sum = sum.value_or(0) + *ms / per;
  }
  return sum;
}

void add_times(const TraceSide& before, const TraceSide& after, double per_before, double per_after,
               TraceComparison& out) {
  const auto add = [&](std::string name, std::optional<double> was, std::optional<double> is) {
    if (was || is) out.times.push_back({.name = std::move(name), .before_ms = was, .after_ms = is});
  };
  if (out.is_per_step) {
    add("step", step_ms(before.facts), step_ms(after.facts));
    const auto part_ms = [](const FactTable& facts, std::string_view part) -> std::optional<double> {
      const auto share = number_in(facts.find("breakdown.parts"), part);
      const auto step = step_ms(facts);
      return share && step ? std::optional(*share / 100 * *step) : std::nullopt;
    };
    for (const auto& [field, name] :
         {std::pair{"data_wait", "  data wait"}, std::pair{"forward", "  forward"}, std::pair{"backward", "  backward"},
          std::pair{"optimizer", "  optimizer"}, std::pair{"other", "  other"}}) {
      add(name, part_ms(before.facts, field), part_ms(after.facts, field));
    }
  }
  for (const auto& [field, name] :
       {std::pair{"wall_ms", "devices"}, std::pair{"compute_ms", "  computing"},
        std::pair{"exposed_communication_ms", "  communication that nothing hides"},
        std::pair{"exposed_copy_ms", "  copies that nothing hides"}, std::pair{"idle_data_ms", "  idle: data"},
        std::pair{"idle_sync_ms", "  idle: host had waited"}, std::pair{"idle_setup_ms", "  idle: allocating, loading"},
        std::pair{"idle_dispatch_ms", "  idle: launch-bound"}, std::pair{"idle_host_ms", "  idle: other host code"},
        std::pair{"idle_launch_ms", "  idle: launch on its way"}, std::pair{"idle_queued_ms", "  idle: queued"},
        std::pair{"idle_unknown_ms", "  idle: not known"}}) {
    add(name, device_ms(before.facts, field, per_before), device_ms(after.facts, field, per_after));
  }
}

}  // namespace

std::string_view to_string(RowChange change) {
  switch (change) {
    case RowChange::kSlower: return "slower";
    case RowChange::kFaster: return "faster";
    case RowChange::kAdded: return "added";
    case RowChange::kGone: return "gone";
  }
  return "?";
}

Result<TraceSide> read_trace_side(const RunFolder& folder, std::string name) {
  HOTLAP_TRY_ASSIGN(LiveAnalysis analysis, LiveAnalysis::open(folder));
  HOTLAP_TRY(analysis.refresh());
  analysis.finish();
  TraceSide side{.name = std::move(name), .facts = analysis.facts()};
  for (const std::string_view kind : {"operators.summary", "kernels.summary", "device.time"}) {
    if (side.facts.find(kind) != nullptr) return side;
  }
  return Error{ErrorCode::kUnsupported, format("{} is no trace: it holds no operators and no kernels", side.name)};
}

TraceComparison compare_traces(const TraceSide& before, const TraceSide& after) {
  TraceComparison out{.before = before.name, .after = after.name, .times = {}, .tables = {}};
  const double steps_before = steps_of(before.facts);
  const double steps_after = steps_of(after.facts);
  out.is_per_step = steps_before > 0 && steps_after > 0;
  const double per_before = out.is_per_step ? steps_before : 1;
  const double per_after = out.is_per_step ? steps_after : 1;
  add_times(before, after, per_before, per_after, out);
  const double all_ms = std::max(whole_ms(before.facts) / per_before, whole_ms(after.facts) / per_after);
  for (const TableDesc& desc : kTables) {
    ComparedTable table = compare_table(desc, before, after, per_before, per_after, kShareOfAllMin * all_ms);
    if (!table.rows.empty() || table.unchanged > 0) out.tables.push_back(std::move(table));
  }
  return out;
}

}  // namespace hotlap
