#pragma once
// A training loop as a profiler's trace shows it, made of a few numbers: a host that launches kernels one after the
// other, and a device that runs them in order.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/fake_recording.h"

namespace hotlap {

struct FakeTracedJob {
  int steps = 8;
  int kernels = 400;  // of a step
  double kernel_us = 300;
  std::string kernel = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn";
  double dispatch_us = 40;  // of the host, for each
  int reads = 0;            // of a step: values that the host waits for, spread evenly
  double copy_us = 0;       // of the batch, at the step's begin
  std::string copy = "Memcpy HtoD (Pageable -> Device)";
  double allocation_us = 0;  // a call at the step's begin

  void record(FakeRecording& out) const {
    Writer w{out};
    out.info_to_fill().attributes["source.format"] = "chrome_trace";
    out.add_attribute("source.format", "chrome_trace");
    w.host = out.add_process({.role = ProcessRole::kMain});
    w.gpu = out.add_process({.label = "gpu0"});
    for (int step = 0; step < steps; ++step) {
      const double begin_us = w.now_us;
      if (allocation_us > 0) w.call("aten::empty", "cudaMalloc", allocation_us);
      if (copy_us > 0) w.copy(copy, copy_us);
      for (int i = 0; i < kernels; ++i) {
        w.launch("aten::linear", kernel, dispatch_us, kernel_us);
        if (reads > 0 && (i + 1) % (kernels / reads) == 0) w.read();
      }
      w.add(SpanKind::kStep, "ProfilerStep#" + std::to_string(step), begin_us, w.now_us - begin_us).step = step;
    }
    // As the store has them: by start, what holds others first.
    std::ranges::stable_sort(w.spans, [](const Span& a, const Span& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
    });
    for (const Span& span : w.spans) out.add_span(span);
  }

 private:
  struct Writer {
    FakeRecording& out;
    std::uint32_t host = 0;
    std::uint32_t gpu = 0;
    double now_us = 1000;
    double free_us = 0;  // when the device has done what it was given
    std::int64_t calls = 0;
    std::vector<Span> spans{};
    std::vector<std::string> names{};

    Span& add(SpanKind kind, const std::string& name, double start_us, double us) {
      Span span{.start_ns = static_cast<std::int64_t>(start_us * 1000),
                .duration_ns = static_cast<std::int64_t>(us * 1000),
                .kind = kind,
                .process = kind == SpanKind::kKernel || kind == SpanKind::kTransfer ? gpu : host,
                .thread = 7};
      auto found = std::ranges::find(names, name);
      if (found == names.end()) {
        out.add_name(name);
        found = names.insert(names.end(), name);
      }
      span.name = static_cast<std::uint32_t>(found - names.begin()) + 1;
      return spans.emplace_back(span);
    }
    void launch(const std::string& what, const std::string& kernel, double dispatch_us, double kernel_us) {
      constexpr double kCallUs = 5;
      ++calls;
      add(SpanKind::kOperator, what, now_us, dispatch_us - 1).value_a = calls;
      add(SpanKind::kRuntime, "cudaLaunchKernel", now_us + dispatch_us - 2 - kCallUs, kCallUs).value_a = calls;
      now_us += dispatch_us;
      const double start_us = std::max(now_us + 3, free_us + 1);
      add(SpanKind::kKernel, kernel, start_us, kernel_us).value_a = calls;
      free_us = start_us + kernel_us;
    }
    void call(const std::string& what, const std::string& name, double us) {
      add(SpanKind::kOperator, what, now_us, us + 2).value_a = ++calls;
      add(SpanKind::kRuntime, name, now_us + 1, us).value_a = calls;
      now_us += us + 3;
    }
    // From memory that is not pinned the host goes on when the copy has ended.
    void copy(const std::string& name, double us) {
      const double start_us = std::max(now_us + 20, free_us + 1);
      const bool is_pageable = name.find("Pageable") != std::string::npos;
      const double call_us = is_pageable ? start_us + us - now_us : 10;
      add(SpanKind::kOperator, "aten::copy_", now_us, call_us + 2).value_a = ++calls;
      add(SpanKind::kRuntime, "cudaMemcpyAsync", now_us + 1, call_us).value_a = calls;
      Span& span = add(SpanKind::kTransfer, name, start_us, us);
      span.value_a = calls;
      span.value_b = static_cast<std::int64_t>(us * 8'000);  // 8 GB/s
      free_us = start_us + us;
      now_us += call_us + 3;
    }
    void read() {
      const double waits_us = std::max(5.0, free_us + 5 - now_us);
      add(SpanKind::kOperator, "aten::item", now_us, waits_us + 3).value_a = ++calls;
      add(SpanKind::kRuntime, "cudaStreamSynchronize", now_us + 1, waits_us).value_a = calls;
      now_us += waits_us + 4;
    }
  };
};

}  // namespace hotlap
