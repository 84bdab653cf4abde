"""The hook's harness with the Python of the frameworks' environment (tools/test_frameworks.sh runs us with it)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hook"))

from harness import PRELUDE, Program, steps, w  # noqa: F401


def run(folder, body, prelude=PRELUDE, **kwargs):
    kwargs.setdefault("timeout", 900)
    return Program(folder, body, prelude).run(python=sys.executable, **kwargs)
