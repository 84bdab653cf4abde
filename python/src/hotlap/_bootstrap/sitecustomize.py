"""Found by Python at start because `hotlap run` puts this folder first on PYTHONPATH.

Starts the hook, then gives way to the sitecustomize that this one hides, as if this folder were not there. Lean: it
runs in every Python process of a job, Python 2 among them, which must be able to read it and notice nothing.
"""
import sys


def _start():
    here = __file__[:-len("/sitecustomize.py")]
    while here in sys.path:
        sys.path.remove(here)  # child processes find it by PYTHONPATH
    if "_hotlap_start" in sys.modules:
        return
    package = here[:-len("/_bootstrap")]
    external = sys.modules["_frozen_importlib_external"]
    spec = external.spec_from_file_location("_hotlap_start", package + "/_start.py")
    module = sys.modules["_frozen_importlib"].module_from_spec(spec)
    sys.modules["_hotlap_start"] = module
    spec.loader.exec_module(module)
    module.start(package)


try:
    _start()
except Exception:
    pass  # the job comes first
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: F401  the hidden one; its absence or failure is reported as without us
