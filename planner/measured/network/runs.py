"""Reader for the output of nccl-tests: a file in, the times of each collective out.

A file may hold several runs, with other text between them. A run that was cut off or returned wrong results is
rejected, because its times mean nothing. The format is that of NVIDIA/nccl-tests and of its ports to other GPUs.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.errors import InputFileError
from planner.files import open_file
from planner.lazy import dataclass
from planner.measured.network.rows import RUN_AGAIN, USED, Table, TableRow, invalid, read_header

Floats = npt.NDArray[np.float64]

LARGEST_BYTES = 200_000_000
"""Most bytes of a file. A run prints some kilobytes or, with NCCL's own debug output, some megabytes."""

_PREFIX = re.compile(r"(?:\[\d+,\d+\]<std\w+>:|\d+:)\s*(?=[#\d])")
"""Prefix that `mpirun --tag-output` and `srun --label` put before each line."""
_STARTING = re.compile(r"# Collective test starting: \S*?(\w+?)_perf")
_RANK = re.compile(
    r"#\s*Rank\s+\d+\s+(?:Group\s+(\d+)\s+)?(?:Pid\s+\d+\s+)?on\s+(\S+)\s+device\s+(\d+)\s+\[[^]]*\]\s*(.*)"
)
_OUT_OF_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d+)\s*(\w*)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CollectiveRun:
    """Times of one collective over the same number of GPUs and nodes, by size."""

    collective: str
    """One of `rows.USED`."""
    ranks: int
    """Number of GPUs that took part."""
    nodes: int
    """Number of hosts that they are on, with equally many on each."""
    device_name: str
    """Device name of the first rank, as its driver reports it."""
    sizes_bytes: Floats
    """Message sizes as nccl-tests counts them (the whole buffer of one rank), ascending and distinct, `[size]`."""
    times_s: Floats
    """Out-of-place times, `[size]`; the median if a size was measured several times."""
    spread_ratio: float
    """Relative standard deviation of repeated measurements of a size; 0 if no size was repeated."""
    group: str = "world"
    """Ranks that form the group (`Communication.group`). All groups of that kind ran concurrently."""
    busy_per_node: int | None = None
    """GPUs at work on each host, in this group and in concurrent ones; None means only those of the group."""
    sampled_sds: Floats | None = None
    """Relative standard error of each time from its samples, `[size]`; None if unknown."""

    @property
    def ranks_per_node(self) -> int:
        """Number of GPUs of the group on each host."""
        return self.ranks // self.nodes

    @property
    def gpus_per_node(self) -> int:
        """Number of GPUs at work on each host, which share its network."""
        return self.busy_per_node or self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    group: int
    """Group number in a run that splits its ranks; each group is a separate communicator."""
    host: str
    device: int
    device_name: str


_Kind = tuple[str, int, int, str]
"""Collective, ranks, nodes and device name. Tables that agree in all four form one run."""


def read_nccl_tests(path: Path) -> tuple[CollectiveRun, ...]:
    """Read the runs of a file, in its order; repeated runs are merged.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it holds no table, or a table that is damaged, cut off, with wrong results or of a single size.
    """
    with open_file(path) as file:
        return parse_nccl_tests(file.read(LARGEST_BYTES + 1), path.name)


def parse_nccl_tests(content: bytes, name: str) -> tuple[CollectiveRun, ...]:
    """Parse the runs in the content of a file; see `read_nccl_tests`.

    Args:
        content: whole content of the file.
        name: name of the file, for errors.

    Raises:
        InputFileError: as `read_nccl_tests`.
    """
    start = f"{name}:1"
    if b"\0" in content:
        raise invalid(start, "expected the text that nccl-tests prints, found a binary file")
    if len(content) > LARGEST_BYTES:
        raise invalid(start, f"expected the output of nccl-tests, found more than {LARGEST_BYTES // 10**6} MB")
    reader = _Reader(name)
    for number, line in enumerate(content.decode("utf-8", errors="replace").split("\n"), 1):
        text = _PREFIX.sub("", line.strip(), count=1)
        if text:
            reader.take(f"{name}:{number}", text)
    reader.expect_ended()
    return reader.runs()


class _Reader:
    """Processes a file line by line and keeps the complete tables."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._collective: str | None = None
        self._ranks: list[_Rank] = []
        self._table: Table | None = None
        self._rows: dict[_Kind, list[TableRow]] = {}
        self._unused: list[InputFileError] = []

    def take(self, place: str, text: str) -> None:
        """Process the next line.

        Raises:
            InputFileError: the line shows that a run is damaged, cut off or wrong.
        """
        if "0" <= text[0] <= "9":
            self._take_row(place, text.split())
        elif starting := _STARTING.match(text):
            self._begin()
            self._collective = starting[1]
        elif text.startswith(("# nThread", "# Using devices")):
            self._begin()
        elif rank := _RANK.match(text):
            group, host, device, name = rank.groups()
            self._ranks.append(_Rank(group=int(group or 0), host=host, device=int(device), device_name=name.strip()))
        elif text[0] == "#" and "busbw" in text:
            self.expect_ended()
            self._table = read_header(place, text)
        elif self._table is not None:
            self._take_end(place, text, self._table)

    def expect_ended(self) -> None:
        """Check that no table is open.

        Raises:
            InputFileError: the run was cut off.
        """
        if self._table is not None:
            raise invalid(self._table.place, "expected `# Avg bus bandwidth` below this table: the run was cut off")

    def _begin(self) -> None:
        self.expect_ended()
        self._ranks = []

    def _take_row(self, place: str, cells: list[str]) -> None:
        if not (cells[0].isascii() and cells[0].isdecimal()):
            return  # output of another program among the rows
        if self._table is not None:
            self._table.read(place, cells)
        elif len(cells) >= 8 and cells[1].isdecimal() and cells[2].isidentifier():
            raise invalid(place, "expected the header of the table (`# size count type ...`) above its rows")

    def _take_end(self, place: str, text: str, table: Table) -> None:
        wrong = _OUT_OF_BOUNDS.search(text)
        if wrong and (wrong[2] == "FAILED" or wrong[1].strip("0")):
            raise invalid(place, f"Out of bounds values: expected 0, found {wrong[1]}: the results were wrong")
        if "Avg bus bandwidth" in text:
            self._keep(table)
            self._table, self._collective = None, None

    def _keep(self, table: Table) -> None:
        if not table.rows:
            raise invalid(table.place, "expected rows below this header, found none")
        ranks, nodes = self._placed(table.place)
        collective = self._collective or table.collective_of(ranks)
        if collective not in USED:
            self._unused.append(invalid(table.place, f"expected {', '.join(USED)}, found {collective}"))
            return
        table.check(collective, ranks)
        kind = (collective, ranks, nodes, self._ranks[0].device_name)
        self._rows.setdefault(kind, []).extend(table.rows)

    def _placed(self, place: str) -> tuple[int, int]:
        """Number of ranks of one communicator, and number of hosts that they are on."""
        groups = Counter(rank.group for rank in self._ranks)
        members = [rank for rank in self._ranks if rank.group == self._ranks[0].group]
        hosts = Counter(rank.host for rank in members)
        listed = "in the `# Rank` lines above the table"
        if len(members) < 2:
            raise invalid(place, f"expected two GPUs or more {listed}, found {len(members)}")
        if len(set(groups.values())) > 1 or len(set(hosts.values())) > 1:
            raise invalid(place, f"expected as many GPUs on each node {listed}")
        if len({(rank.host, rank.device) for rank in members}) < len(members):
            hint = "give every node a host name of its own, and every rank a GPU of its own"
            raise invalid(place, f"expected each GPU once {listed}, found a host and device twice", hint)
        return len(members), len(hosts)

    def runs(self) -> tuple[CollectiveRun, ...]:
        """Runs from all tables that were kept.

        Raises:
            InputFileError: there are no tables, or only tables of collectives that the planner has no use for.
        """
        if not self._rows and self._unused:
            raise self._unused[0]
        if not self._rows:
            expected = "the table that nccl-tests prints (`# size count type ... time algbw busbw`)"
            raise invalid(f"{self._file}:1", f"expected {expected}, found none")
        return tuple(_run(kind, rows) for kind, rows in self._rows.items())


def _run(kind: _Kind, rows: list[TableRow]) -> CollectiveRun:
    """Combine rows into a run: the median time of each size, and the spread of repeated measurements."""
    sizes, size_indices = np.unique([row.size_bytes for row in rows], return_inverse=True)
    if len(sizes) < 2:
        raise invalid(rows[0].place, "expected messages of several sizes, found one", _SIZES)
    order = np.argsort(size_indices, kind="stable")
    parts = np.split(np.array([row.time_s for row in rows])[order], np.flatnonzero(np.diff(size_indices[order])) + 1)
    repeated = [np.var(np.log(part), ddof=1) for part in parts if len(part) > 1]
    collective, ranks, nodes, device_name = kind
    return CollectiveRun(
        collective=collective, ranks=ranks, nodes=nodes, device_name=device_name,
        sizes_bytes=sizes.astype(np.float64), times_s=np.array([float(np.median(part)) for part in parts]),
        spread_ratio=float(np.sqrt(np.mean(repeated))) if repeated else 0.0,
    )  # fmt: skip


_SIZES = RUN_AGAIN.replace("run it again to its end", "run it over a range of sizes")
