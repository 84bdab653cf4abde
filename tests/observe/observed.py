"""What the tests of native observers share: a home of their own, and looking at what was recorded."""
import json
import os
import pathlib
import subprocess

HOTLAP = pathlib.Path(os.environ["HOTLAP"])


class Place:
    def __init__(self, folder, observers):
        self.folder, self.observers = folder, observers
        (folder / "runtime").mkdir(mode=0o700)
        foreign = ("HOTLAP", "NVTX", "NCCL", "RANK", "PYTHONPATH")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.environment.update(HOTLAP_HOME=str(folder / "home"), XDG_RUNTIME_DIR=str(folder / "runtime"))

    def plain(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=240,
                              stdin=subprocess.DEVNULL, check=False)

    def hotlap(self, *words):
        return self.plain(str(HOTLAP), *words)

    def run(self, *job, flags=("--no-hook",)):
        return self.hotlap("run", "--observe", self.observers, *flags, "--", *job)

    def rows(self, text):
        done = self.hotlap("sql", "last", text, "--format", "json")
        assert done.returncode == 0, done.stderr
        return [tuple(row) for row in json.loads(done.stdout)["rows"]]

    def totals(self, metric):
        return dict(self.rows("SELECT instance, max(value) FROM sample WHERE metric = '%s' GROUP BY instance" % metric))

    def recording(self):
        (recording,) = json.loads(self.hotlap("show", "last", "--json").stdout)["recordings"]
        return recording

    def attributes(self):
        return self.recording()["attributes"]

    def losses(self):
        return {loss["counter"]: loss["count"] for loss in self.recording()["losses"]}

    @staticmethod
    def library(name):
        return HOTLAP.parent / "lib" / "hotlap" / name
