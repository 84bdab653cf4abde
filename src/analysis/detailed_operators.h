#pragma once
// Operators of a trace by the arguments of their calls: by shape, with what they compute, and by Python stack. Confined
// to one thread. Bounded: kRowsMax different ones of name and arguments.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "model/fact.h"

namespace hotlap {

struct OperatorRow {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
  std::int64_t device_ns = 0;
  std::uint64_t device_calls = 0;
  bool empty() const { return calls == 0 && device_calls == 0; }
  void add(const OperatorRow& other) {
    calls += other.calls;
    total_ns += other.total_ns;
    self_ns += other.self_ns;
    device_ns += other.device_ns;
    device_calls += other.device_calls;
  }
};

inline constexpr std::array kOperatorShapeFields{
    FactField{"name", "text", ""},
    FactField{"shapes", "text", "of its inputs; []: no tensor"},
    FactField{"types", "text", "of its inputs, where the trace has them"},
    FactField{"calls", "{call}", ""},
    FactField{"total_ms", "ms", "on the CPU, with what it calls"},
    FactField{"self_ms", "ms", "without what it calls"},
    FactField{"device_ms", "ms", "kernels and copies that it launched itself"},
    FactField{"device_calls", "{kernel}", "how many"},
    FactField{"gflop", "G{operation}", "of all its calls, computed from the shapes"},
    FactField{"tflops", "T{operation}/s", "that, in the time of its kernels"},
};
inline constexpr std::array kOperatorStackFields{
    FactField{"name", "text", ""},
    FactField{"stack", "text", "Python's, as the profiler has it"},
    FactField{"calls", "{call}", ""},
    FactField{"self_ms", "ms", "on the CPU, without what it calls"},
    FactField{"device_ms", "ms", "kernels and copies that it launched itself"},
};
inline constexpr std::array kOperatorFlopsFields{
    FactField{"type", "text", "of the inputs"},
    FactField{"gflop", "G{operation}", "of operators that launched kernels, computed from their shapes"},
    FactField{"device_ms", "ms", "of those kernels"},
    FactField{"tflops", "T{operation}/s", "that"},
    FactField{"device", "text", "whose peak is compared"},
    FactField{"peak_precision", "text", "'fp32', 'tf32', 'bf16', 'fp16'"},
    FactField{"peak_tflops", "T{operation}/s", "of the device in that precision, as its maker states it"},
    FactField{"peak_pct", "%", "tflops of it"},
};

class DetailedOperators {
 public:
  static constexpr std::size_t kRowsMax = 200'000;
  using NameOf = std::function<std::string(std::uint32_t)>;
  // `device`: the model of the trace's GPUs; empty: unknown, or several.
  DetailedOperators(NameOf name_of, std::string device) : name_of_(std::move(name_of)), device_(std::move(device)) {}

  // Null: the call tells no arguments, or there are too many.
  OperatorRow* at(std::uint32_t name, std::uint32_t detail) {
    if (detail == 0) return nullptr;
    const std::uint64_t key = std::uint64_t{name} << 32U | detail;
    const auto found = rows_.find(key);
    if (found != rows_.end()) return &found->second;
    return rows_.size() >= kRowsMax ? nullptr : &rows_[key];
  }
  // Matrix work in fp32 ran as tf32, as its kernels are called.
  void set_tf32() { is_tf32_ = true; }

  void merge(const DetailedOperators& other);
  void snapshot(FactTable& out) const;

 private:
  using Texts = std::pair<std::string, std::string>;  // name and arguments
  std::map<Texts, OperatorRow> all() const;
  void add_flops(const std::map<std::string, std::pair<double, std::int64_t>>& by_type, FactTable& out) const;

  NameOf name_of_;
  std::string device_;
  bool is_tf32_ = false;
  std::unordered_map<std::uint64_t, OperatorRow> rows_;
  std::map<Texts, OperatorRow> merged_;
};

}  // namespace hotlap
