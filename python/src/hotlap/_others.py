"""Another profiler is at work in this process: then we are not. Looked for before each window."""
import os
import sys

# Set by what injects itself into a program: Nsight Systems and Compute, rocprof, Kineto's daemon.
VARIABLES = (
    ("NSYS_PROFILING_SESSION_ID", "Nsight Systems"),
    ("NSYS_TARGET_SESSION_ID", "Nsight Systems"),
    ("NV_COMPUTE_PROFILER_PERFWORKS_DIR", "Nsight Compute"),
    ("NV_TPS_LAUNCH_UUID", "Nsight"),
    ("CUDA_INJECTION64_PATH", "a library that CUDA_INJECTION64_PATH injects"),
    ("ROCPROFILER_REGISTER_FORCE_LOAD", "rocprof"),
    ("ROCP_TOOL_LIB", "rocprof"),
    ("KINETO_USE_DAEMON", "Kineto's daemon"),
)
LIBRARIES = ((b"libToolsInjection", "Nsight"), (b"libnsys", "Nsight Systems"), (b"librocprofiler-sdk-tool", "rocprof"),
             (b"librocprof-sys", "rocprof"), (b"libvtune", "VTune"))


def by_environment(environ):
    for name, who in VARIABLES:
        if environ.get(name, "0") not in ("", "0"):
            return who
    return None


def by_libraries():
    try:
        with open("/proc/self/maps", "rb") as file:
            maps = file.read()
    except OSError:
        return None
    for name, who in LIBRARIES:
        if name in maps:
            return who
    return None


def in_python():
    """cProfile and its like, debuggers, coverage: they see each call, ours too."""
    if sys.getprofile() is not None:
        return "a Python profiler (sys.setprofile)"
    if sys.gettrace() is not None:
        return "a debugger or tracer (sys.settrace)"
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        for tool in (monitoring.DEBUGGER_ID, monitoring.PROFILER_ID):
            name = monitoring.get_tool(tool)
            if name is not None:
                return "a Python profiler or debugger (%s)" % name
    return None


def active():
    """Its name, or None. From the thread that trains."""
    return in_python() or by_environment(os.environ) or by_libraries()
