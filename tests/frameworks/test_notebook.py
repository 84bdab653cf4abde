"""Training in a notebook's kernel: a process that Jupyter starts, which runs cells as they come."""
import json
import pathlib
import subprocess
import sys
import tempfile

import pytest
from framework_harness import PRELUDE, steps
from harness import collect, environment

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELLS = [PRELUDE, "model = net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
         "for x, y in DataLoader(data(), batch_size=8):\n    say(update(model, optimizer, x, y))",
         "for x, y in DataLoader(data(), batch_size=16):\n    say(update(model, optimizer, x, y))"]


def executed(folder, ring_dir):
    """What the cells printed."""
    notebook = folder / "train.ipynb"
    notebook.write_text(json.dumps({
        "nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "cells": [{"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": cell}
                  for cell in CELLS]}))
    subprocess.run([sys.executable, "-c", "from nbclient.cli import main; main()", "--inplace", str(notebook)], check=True, timeout=600,
                   cwd=str(folder), env=environment(ring_dir, {"IPYTHONDIR": str(folder / "ipython")}))
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join("".join(output.get("text", "")) for output in cell["outputs"]) for cell in cells]


def test_the_cells_of_a_notebook_are_seen(tmp_path):
    with tempfile.TemporaryDirectory(prefix="hotlap-rings-") as name:
        hooked = executed(tmp_path, pathlib.Path(name))
        rings = [ring for ring in collect(pathlib.Path(name))[0] if steps(ring)]
    assert hooked == executed(tmp_path, None) and hooked[2].count("\n") == 8
    assert [len(steps(ring)) for ring in rings] == [12]
    assert rings[0].errors == 0 and rings[0].closed == 1
