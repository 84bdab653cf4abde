"""The surface of torch.cuda that the hook uses, on a torch without CUDA: two devices, of which the second is current.

Imported by programs of the tests after torch, once random numbers are seeded. What the hook may never do fails loudly
here: waiting for the device, reading an event that is not over, recording while a graph is captured.
"""
import itertools

import torch

clock = itertools.count(1)
capturing = False
late = set()      # events that are not over yet, whatever is asked
log = []          # what was recorded, for the program to print to stderr
stats = {
    0: {"allocated_bytes": {"all": {"current": 0, "peak": 0}}, "reserved_bytes": {"all": {"current": 0, "peak": 0}},
        "num_alloc_retries": 0, "num_ooms": 0},
    1: {"allocated_bytes": {"all": {"current": 1000, "peak": 3000}},
        "reserved_bytes": {"all": {"current": 4096, "peak": 8192}}, "num_alloc_retries": 2, "num_ooms": 1},
}


class Event:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        assert enable_timing
        self.t = None
        log.append("made")

    def record(self, stream=None):
        assert not capturing, "recorded into a graph"
        self.t = next(clock)

    def query(self):
        return self not in late

    def elapsed_time(self, other):
        assert self.query() and other.query(), "not over yet"
        return float(other.t - self.t)

    def synchronize(self):
        raise AssertionError("waited for an event")


class Properties:
    name, total_memory, major, minor = "NVIDIA H100 80GB HBM3", 80 << 30, 9, 0


def wait(*_):
    raise AssertionError("waited for the device")


def statistics(device=None):
    return stats[device]


cuda = torch.cuda
cuda.Event = Event
cuda.is_initialized = lambda: True
cuda.device_count = lambda: 2
cuda.current_device = lambda: 1
cuda.synchronize = wait
cuda.memory_stats_as_nested_dict = statistics
cuda.get_device_properties = lambda device: Properties
cuda.is_current_stream_capturing = lambda: capturing
