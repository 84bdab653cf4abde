"""What the wheel's hotlap_autoload.pth imports when HOTLAP_RING_DIR is set: for where PYTHONPATH does not reach."""
import sys

try:
    if "_hotlap_start" not in sys.modules:
        from hotlap import _start

        sys.modules["_hotlap_start"] = _start
        _start.start(__file__.rpartition("/")[0])
except Exception:
    pass  # the job comes first
