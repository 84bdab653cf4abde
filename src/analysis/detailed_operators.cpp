#include "analysis/detailed_operators.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "analysis/gpu_peaks.h"
#include "analysis/operator_detail.h"
#include "base/clock.h"
#include "base/format.h"

namespace hotlap {
namespace {

constexpr std::size_t kFactsMax = 2000;  // of each kind; answers show fewer

double ms(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerMs); }
double tflops(double flops, std::int64_t ns) { return flops / static_cast<double>(ns) / 1e3; }

// "float, float"
std::string types_text(const std::vector<std::string>& types) {
  std::string out;
  for (const std::string& type : types) out += (out.empty() ? "" : ", ") + (type.empty() ? std::string("-") : type);
  return out;
}

std::optional<Precision> precision_of(const std::string& type, bool is_tf32) {
  if (type == "float") return is_tf32 ? Precision::kTf32 : Precision::kFp32;
  if (type == "c10::BFloat16") return Precision::kBf16;
  if (type == "c10::Half") return Precision::kFp16;
  return std::nullopt;
}

struct ShapeRow {
  OperatorRow row;
  std::optional<double> flops;
};

template <class Key, class Row, class Weight>
std::vector<const std::pair<const Key, Row>*> largest(const std::map<Key, Row>& rows, Weight weight) {
  std::vector<const std::pair<const Key, Row>*> out;
  out.reserve(rows.size());
  for (const auto& entry : rows) out.push_back(&entry);
  std::ranges::stable_sort(out, [&](const auto* a, const auto* b) { return weight(a->second) > weight(b->second); });
  if (out.size() > kFactsMax) out.resize(kFactsMax);
  return out;
}

std::int64_t weight_of(const OperatorRow& row) { return std::max(row.self_ns, row.device_ns); }

}  // namespace

void DetailedOperators::merge(const DetailedOperators& other) {
  for (const auto& [texts, row] : other.all()) merged_[texts].add(row);
  if (device_.empty()) device_ = other.device_;
  is_tf32_ |= other.is_tf32_;
}

std::map<DetailedOperators::Texts, OperatorRow> DetailedOperators::all() const {
  std::map<Texts, OperatorRow> out = merged_;
  for (const auto& [key, row] : rows_) {
    if (row.empty()) continue;
    out[{name_of_(static_cast<std::uint32_t>(key >> 32U)), name_of_(static_cast<std::uint32_t>(key))}].add(row);
  }
  return out;
}

void DetailedOperators::snapshot(FactTable& out) const {
  using ShapeKey = std::tuple<std::string, std::string, std::string>;  // name, shapes, types
  std::map<ShapeKey, ShapeRow> by_shape;
  std::map<Texts, OperatorRow> by_stack;
  std::map<std::string, std::pair<double, std::int64_t>> by_type;  // FLOPs and the time of their kernels
  for (const auto& [texts, row] : all()) {
    const auto& [name, arguments] = texts;
    const OperatorDetail detail = parse_operator_detail(arguments);
    if (!detail.stack.empty()) by_stack[{name, detail.stack}].add(row);
    if (detail.shapes_text.empty()) continue;
    ShapeRow& shape = by_shape[{name, detail.shapes_text, types_text(detail.types)}];
    shape.row.add(row);
    const auto flops = flops_of(name, detail);
    if (!flops) continue;
    const double all_flops = *flops * static_cast<double>(row.calls);
    shape.flops = shape.flops.value_or(0) + all_flops;
    // What launches no kernel itself only calls what computes: it would count twice.
    if (row.device_ns <= 0) continue;
    auto& [sum, ns] = by_type[detail.types.empty() ? std::string() : detail.types.front()];
    sum += all_flops;
    ns += row.device_ns;
  }
  for (const auto* entry : largest(by_shape, [](const ShapeRow& one) { return weight_of(one.row); })) {
    const auto& [name, shapes, types] = entry->first;
    const auto& [row, flops] = entry->second;
    Fact fact{.kind = "operators.shape"};
    fact.set_text("name", name).set_text("shapes", shapes);
    if (!types.empty()) fact.set_text("types", types);
    fact.set("calls", static_cast<double>(row.calls)).set("total_ms", ms(row.total_ns)).set("self_ms", ms(row.self_ns));
    if (row.device_calls > 0) {
      fact.set("device_ms", ms(row.device_ns)).set("device_calls", static_cast<double>(row.device_calls));
    }
    if (flops) fact.set("gflop", *flops / 1e9);
    if (flops && row.device_ns > 0) fact.set("tflops", tflops(*flops, row.device_ns));
    out.add(std::move(fact));
  }
  for (const auto* entry : largest(by_stack, weight_of)) {
    Fact fact{.kind = "operators.stack"};
    fact.set_text("name", entry->first.first).set_text("stack", entry->first.second);
    fact.set("calls", static_cast<double>(entry->second.calls)).set("self_ms", ms(entry->second.self_ns));
    if (entry->second.device_calls > 0) fact.set("device_ms", ms(entry->second.device_ns));
    out.add(std::move(fact));
  }
  add_flops(by_type, out);
}

void DetailedOperators::add_flops(const std::map<std::string, std::pair<double, std::int64_t>>& by_type,
                                  FactTable& out) const {
  for (const auto& [type, sums] : by_type) {
    const auto& [flops, ns] = sums;
    Fact fact{.kind = "operators.flops"};
    if (!type.empty()) fact.set_text("type", type);
    fact.set("gflop", flops / 1e9).set("device_ms", ms(ns)).set("tflops", tflops(flops, ns));
    const auto precision = precision_of(type, is_tf32_);
    const auto peaks = gpu_peaks(device_);
    const auto peak = precision && peaks ? peak_tflops(*peaks, *precision) : std::nullopt;
    if (peak) {
      fact.set_text("device", device_).set_text("peak_precision", std::string(to_string(*precision)));
      fact.set("peak_tflops", *peak).set("peak_pct", 100 * tflops(flops, ns) / *peak);
    }
    out.add(std::move(fact));
  }
}

}  // namespace hotlap
