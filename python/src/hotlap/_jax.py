"""JAX: compilations, what devices hold, and steps by hotlap.step(). Nothing of JAX is imported here.

A jitted function is called past Python, so its calls are not seen; a loop that reads a PyTorch loader has its steps
from that, any other says hotlap.step().
"""
import sys
import time

from hotlap import _hook, _wire
from hotlap._events import OFF

now = time.monotonic_ns
COMPILED = "/jax/core/compile/backend_compile_duration"
DEVICES_MAX = 64
MEMORY = (("allocator.allocated.bytes", "bytes_in_use"), ("allocator.allocated_max.bytes", "peak_bytes_in_use"),
          ("allocator.limit.bytes", "bytes_limit"))
MEMORY_NS = 500_000_000  # between two looks at the devices' memory


def attach(jax):
    recorder, core = _hook.parts()
    if recorder.off:
        return
    monitoring = sys.modules.get("jax._src.monitoring")
    register = getattr(monitoring, "register_event_duration_secs_listener", None)
    if register is not None:
        register(listener(recorder, core))
    recorder.info("jax", {"version": str(getattr(jax, "__version__", ""))})
    memory = Memory(recorder, core)
    core.at_step.append(memory.look)
    core.at_settle.append(memory.describe)


def listener(recorder, core):
    def measured(event, duration, **details):
        if event != COMPILED or core.busy & OFF:
            return
        try:
            end = now()
            name = details.get("fun_name")
            text = "compile %s" % name if name else "compile"
            core.note_span(_wire.COMPILE, end - int(duration * 1e9), end, recorder.name(text), -1, -1)
        except Exception:
            recorder.failed()

    return measured


class Memory:
    """What accelerators hold, as their allocator tells without waiting for the device. A CPU tells nothing."""

    def __init__(self, recorder, core):
        self.recorder, self.core = recorder, core
        self.next_ns = 0
        self.devices = None

    def backends(self):
        """Those that the program has started: looking starts none."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        return dict(getattr(bridge, "_backends", None) or {})

    def describe(self):
        """When the first steps are over: whether the program uses an accelerator."""
        backends = self.backends()
        kinds = [kind for kind in backends if kind not in ("cpu", "interpreter")]
        self.devices = [device for kind in kinds for device in backends[kind].local_devices()]
        self.recorder.info("accelerator", {"kind": kinds[0] if kinds else None, "initialised": bool(kinds),
                                           "devices": len(self.devices) if kinds else None})

    def look(self, t):
        if not self.devices or t < self.next_ns:
            return
        self.next_ns = t + MEMORY_NS
        try:
            for device in self.devices[:DEVICES_MAX]:
                held = device.memory_stats() or {}
                for metric, key in MEMORY:
                    value = held.get(key)
                    if value is not None:
                        self.recorder.figure(metric, "%s:%d" % (device.platform, device.id), float(value), t)
        except Exception:
            self.devices = None
            self.recorder.failed()
