"""Reading runs from Python: hotlap.open("last").sql("SELECT …"). By way of the program `hotlap`, so that any Python can;
standard library only. Columns are NumPy arrays where NumPy is installed, else lists.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing is imported for it at run time
    from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union


class Error(Exception):
    """What the program said: one line."""


def program() -> str:
    """The path of `hotlap`: $HOTLAP_PROGRAM, beside this Python, or on PATH."""
    named = os.environ.get("HOTLAP_PROGRAM")
    if named:
        return named
    beside = os.path.join(os.path.dirname(sys.executable or ""), "hotlap")
    if os.access(beside, os.X_OK) and not os.path.isdir(beside):
        return beside
    found = shutil.which("hotlap")
    if found is None:
        raise Error("the program hotlap is not on PATH: install it, or set HOTLAP_PROGRAM to its path")
    return found


def call(words: Sequence[str]) -> bytes:
    environment = dict(os.environ)
    # Inside a recorded job: what we start is not a part of it.
    for name in ("HOTLAP_RING_DIR", "HOTLAP_RUN_ID"):
        environment.pop(name, None)
    try:
        done = subprocess.run([program()] + list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment)
    except OSError as error:
        raise Error("cannot start %s: %s" % (program(), error.strerror or error)) from None
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").strip() or "hotlap ended with code %d" % done.returncode
        raise Error(text.split("\n")[-1])
    return done.stdout


def numpy() -> Any:
    """NumPy, or None."""
    try:
        import numpy as found  # type: ignore[import-not-found,unused-ignore]

        return found
    except Exception:  # absent, or broken
        return None


class Table:
    """Columns by name, in the order of the query: table["ms"]. Numbers are NumPy arrays where NumPy is installed (whole numbers
    int64, others and those with missing ones float64 with NaN), texts arrays of objects; else lists, with None for missing."""

    def __init__(self, names: List[str], types: List[str], columns: List[List[Any]]) -> None:
        self.columns = names
        self.types = types
        self._lists = columns
        self._arrays: Dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._lists[0]) if self._lists else 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def keys(self) -> List[str]:
        return list(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Any:
        if name not in self._arrays:
            try:
                place = self.columns.index(name)
            except ValueError:
                raise KeyError("%s; there are: %s" % (name, ", ".join(self.columns))) from None
            self._arrays[name] = self._array(place)
        return self._arrays[name]

    def _array(self, place: int) -> Any:
        np = numpy()
        values = self._lists[place]
        if np is None:
            return values
        kind = self.types[place]
        if kind == "integer" and None not in values:
            return np.array(values, dtype=np.int64)
        if kind in ("integer", "real", "null"):
            return np.array([float("nan") if value is None else value for value in values], dtype=np.float64)
        made = np.empty(len(values), dtype=object)
        made[:] = values
        return made

    def list(self, name: str) -> List[Any]:
        """A column as a list, with None for missing."""
        return self._lists[self.columns.index(name)]

    def rows(self) -> List[Tuple[Any, ...]]:
        return list(zip(*self._lists)) if self._lists else []

    def to_pandas(self) -> Any:
        """A DataFrame; needs pandas."""
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise Error("pandas is not installed: table[name] has a column without it") from None
        return pandas.DataFrame({name: self[name] for name in self.columns}, columns=self.columns)

    def __repr__(self) -> str:
        return "<hotlap table: %d rows of %s>" % (len(self), ", ".join(self.columns))


def table_of(document: bytes) -> Table:
    content = json.loads(document.decode("utf-8"))
    names, types = content["columns"], content["types"]
    columns: List[List[Any]] = [list(column) for column in zip(*content["rows"])] or [[] for _ in names]
    for place, kind in enumerate(types):
        if kind == "integer":  # beyond 2^53 they travel as text
            columns[place] = [int(value) if isinstance(value, str) else value for value in columns[place]]
    return Table(names, types, columns)


def quoted(text: str) -> str:
    return "'" + str(text).replace("\x00", "").replace("'", "''") + "'"


class Run:
    """One recorded run, finished or going on. Made by hotlap.open()."""

    def __init__(self, run: str, timeout_s: Optional[float] = None) -> None:
        self._run = run
        self._timeout_s = timeout_s
        found = self.sql("SELECT id, name, status, node, duration_s FROM run").rows()[0]
        self.id, self.name, self.status, self.node, self.duration_s = found
        if run == "last":  # which run that is does not change under us
            self._run = self.id

    def sql(self, query: str) -> Table:
        """The rows of one SELECT (docs/reference/sql.md)."""
        words = ["sql", "--format", "json"]
        if self._timeout_s is not None:
            words.append("--timeout=%dms" % max(1, round(self._timeout_s * 1000)))
        if query.lstrip().startswith("-"):
            query = "\n" + query.lstrip()
        return table_of(call(words + ["--", self._run, query]))

    def samples(self, metric: str, instance: Optional[str] = None, start_s: Optional[float] = None,
                end_s: Optional[float] = None) -> Table:
        """t_s, instance, value and rate of one metric; between two times in seconds since the run's first sample."""
        where = ["metric = " + quoted(metric)]
        if instance is not None:
            where.append("instance = " + quoted(instance))
        return self.sql("SELECT t_s, t_ns, instance, value, rate, missing, node FROM sample WHERE %s ORDER BY t_s"
                        % " AND ".join(where + times("t_s", start_s, end_s)))

    def spans(self, kind: Optional[str] = None, start_s: Optional[float] = None, end_s: Optional[float] = None) -> Table:
        """Spans, all or of one kind ("data_wait", "forward", "worker_batch" …)."""
        where = ["1"] if kind is None else ["kind = " + quoted(kind)]
        return self.sql("SELECT start_s, start_ns, duration_ms, kind, name, process, rank, step, value_a, value_b, node "
                        "FROM span WHERE %s ORDER BY start_s" % " AND ".join(where + times("start_s", start_s, end_s)))

    def steps(self, rank: Optional[int] = None) -> Table:
        """Training steps with their parts in ms, of all ranks or of one."""
        where = "" if rank is None else " WHERE rank = %d" % rank
        return self.sql("SELECT * FROM step%s ORDER BY start_s" % where)

    def findings(self) -> Table:
        """What the rules found."""
        return self.sql("SELECT * FROM finding")

    def answer(self) -> Dict[str, Any]:
        """The whole answer about the run, as `hotlap analyze --json` prints it."""
        made: Dict[str, Any] = json.loads(call(["analyze", "--json", "--", self._run]).decode("utf-8"))
        return made

    def verdict(self) -> str:
        """The answer in words."""
        return str(self.answer()["verdict"]["text"])

    def __repr__(self) -> str:
        return "<hotlap run %s (%s), %s>" % (self.id, self.name, self.status)


def times(column: str, start_s: Optional[float], end_s: Optional[float]) -> List[str]:
    where = []
    if start_s is not None:
        where.append("%s >= %r" % (column, float(start_s)))
    if end_s is not None:
        where.append("%s < %r" % (column, float(end_s)))
    return where


def open_run(run: Union[str, os.PathLike[str]] = "last", timeout_s: Optional[float] = None) -> Run:
    return Run(os.fspath(run), timeout_s)
