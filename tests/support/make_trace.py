"""Writes a small trace as Kineto does: a training loop on one GPU, with or without loader workers.

    make_trace.py [--workers N] [--steps N] [--unmarked] [--linked]    to standard output
"""
import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--unmarked", action="store_true", help="without ProfilerStep")
parser.add_argument("--linked", action="store_true", help="with autograd's numbers, a copy and an all-reduce a step")
arguments = parser.parse_args()

PID, MAIN, ENGINE = 4711, 4711, 4720
events: list[dict[str, object]] = []
ids = 0
stream_free = 0.0  # when the device's stream has ended what was launched before


def add(category: str, name: str, ts: float, dur: float, tid: int = MAIN, **args: object) -> None:
    events.append({"ph": "X", "cat": category, "name": name, "pid": PID, "tid": tid, "ts": ts, "dur": dur, "args": args})


def operator(name: str, ts: float, dur: float, kernel: str, kernel_us: float, tid: int = MAIN, number: int = -1) -> None:
    """An operator that launches one kernel, which begins 8 us after its launch or when the stream is free."""
    global ids, stream_free
    ids += 1
    start = max(ts + dur / 2 + 8, stream_free)
    stream_free = start + kernel_us
    linked = {"Sequence number": number} if arguments.linked and number >= 0 else {}
    add("cpu_op", name, ts, dur, tid, **{"External id": ids}, **linked)
    add("cuda_runtime", "cudaLaunchKernel", ts + dur / 2, 5, tid, **{"External id": ids, "correlation": ids})
    add("kernel", kernel, start, kernel_us, 7, device=0, stream=7, correlation=ids, **{"External id": ids})
    events[-1]["pid"] = 0


def add_copy(ts: float) -> None:
    """19.3 MB to the device, in 40 us of the host."""
    global ids, stream_free
    ids += 1
    add("cpu_op", "aten::copy_", ts, 50, **{"External id": ids})
    add("cuda_runtime", "cudaMemcpyAsync", ts + 2, 40, **{"External id": ids, "correlation": ids})
    start = max(ts + 10, stream_free)
    stream_free = start + 2_300
    add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", start, 2_300, 7, device=0, stream=7, correlation=ids,
        bytes=19_267_584)
    events[-1]["pid"] = 0


def add_all_reduce(ts: float) -> None:
    """On a stream of its own, half of it behind the kernel before."""
    global ids
    ids += 1
    add("cuda_runtime", "cudaLaunchKernel", ts, 5, ENGINE, correlation=ids)
    add("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", stream_free - 6_000, 12_000, 9, device=0,
        stream=9, correlation=ids)
    events[-1]["pid"] = 0


wait = 70_000 if arguments.workers == 0 else 400
step_us = 100_000 + wait
for step in range(arguments.steps):
    at = 1_000_000.25 + step * step_us
    if not arguments.unmarked:
        add("user_annotation", f"ProfilerStep#{step}", at, step_us - 10)
    loader = "_SingleProcessDataLoaderIter" if arguments.workers == 0 else "_MultiProcessingDataLoaderIter"
    add("user_annotation", f"enumerate(DataLoader)#{loader}.__next__", at + 20, wait)
    at += wait + 100
    if arguments.linked:
        add_copy(at - 60)
    operator("aten::conv2d", at, 900, "sm80_xmma_fprop", 30_000, number=2 * step)
    operator("aten::relu", at + 1_000, 300, "vectorized_elementwise_kernel", 4_000, number=2 * step + 1)
    engine = "autograd::engine::evaluate_function: "
    operator(engine + "ReluBackward0", at + 3_000, 500, "threshold_backward", 5_000, ENGINE, number=2 * step + 1)
    operator(engine + "ConvolutionBackward0", at + 4_000, 800, "sm80_xmma_dgrad", 40_000, ENGINE, number=2 * step)
    if arguments.linked:
        add_all_reduce(at + 4_700)
    add("user_annotation", "Optimizer.step#SGD.step", at + 6_000, 2_000)
    operator("aten::_foreach_add_", at + 6_100, 1_000, "multi_tensor_apply_kernel", 2_000)
    add("cpu_op", "aten::item", at + 9_000, 85_000, **{"External id": 0})
    add("cuda_runtime", "cudaStreamSynchronize", at + 9_010, 84_900)

print(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
                  "baseTimeNanoseconds": 1_712_982_000_000_000_000, "traceEvents": events}))
