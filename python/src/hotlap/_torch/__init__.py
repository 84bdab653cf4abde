"""PyTorch, 1.13 to current: attaches the adapters, one file per area. Nothing of torch is imported here.

Rules for every wrapper in this folder: a wrapped function runs exactly once and its result or exception passes
unchanged, without our frame in the traceback; what we do around it is inside try; code of ours is never compiled
(skip_code) and where dynamo inlines a wrapper it sees only the plain call (is_compiling).
"""
import sys
import types

from hotlap import _hook

AREAS = ("device", "loader", "module", "optimizer", "checkpoint", "distributed", "profile", "operators")
_attached = []


def is_compiling_of(torch):
    """torch.compiler.is_compiling, which dynamo takes for a constant; None where there is no dynamo to care for."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", None)


def attach(torch):
    if _attached:
        return
    _attached.append(True)
    recorder, core = _hook.parts()
    if recorder.off:
        return
    for area in AREAS:
        name = "hotlap._torch." + area
        try:
            __import__(name)
            sys.modules[name].attach_area(torch, recorder, core)
        except Exception as error:
            recorder.info("hook.adapter_failed", {"area": area, "error": "%s: %s" % (type(error).__name__, error)})
    recorder.info("torch", {"version": str(torch.__version__), "cuda": getattr(torch.version, "cuda", None),
                            "hip": getattr(torch.version, "hip", None), "threads": torch.get_num_threads()})


def skip_own_code(dynamo):
    """Tells dynamo never to compile our frames (what they call it may): they run inside everything."""
    skip = getattr(dynamo.eval_frame, "skip_code", None) or getattr(dynamo.decorators, "skip_code", None)
    if skip is None:
        return
    for name, module in list(sys.modules.items()):
        if name == "_hotlap_start" or name == "hotlap" or name.startswith("hotlap."):
            for value in list(vars(module).values()):
                for function in vars(value).values() if isinstance(value, type) else (value,):
                    if isinstance(function, types.FunctionType) and function.__module__ == name:
                        skip_nested(skip, function.__code__)


def skip_nested(skip, code):
    skip(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            skip_nested(skip, constant)


