"""What whole trees of processes use: CPU time and, sampled, memory."""

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from processes import cpu_s

_PROC = Path("/proc")
_SAMPLE_EVERY_S = 0.03
_GONE = (FileNotFoundError, ProcessLookupError)
GroupOf = Callable[[int], Hashable | None]


def descendants(root: int) -> list[int]:
    """The processes below one, by who started or adopted them."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    found, waiting = [], [root]
    while waiting:
        below = children[waiting.pop()]
        found += below
        waiting += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for one in _PROC.iterdir():
        if one.name.isdigit():
            with contextlib.suppress(*_GONE):
                yield int(one.name), int((one / "stat").read_text().rpartition(")")[2].split()[1])


def tree_cpu_s(root: int) -> float:
    """Of a process, all below it, and all that they have waited for.

    One that ends between two looks is missed: to be asked when the tree stands still.
    """
    used = 0.0
    for pid in (root, *descendants(root)):
        with contextlib.suppress(*_GONE):
            used += cpu_s(pid)
    return used


def wait_until_quiet(root: int, *, limit_s: float = 60) -> None:
    """Wait until a tree has used next to nothing for a while.

    Raises:
        TimeoutError: it does not come to rest.
    """
    ends, quiet, before = time.monotonic() + limit_s, 0, tree_cpu_s(root)
    while quiet < 3:
        if time.monotonic() > ends:
            raise TimeoutError(f"Process {root} is not idle after {limit_s:.0f} s.")
        time.sleep(0.3)
        now = tree_cpu_s(root)
        quiet = quiet + 1 if now - before < 0.025 else 0
        before = now


def share_mb(pid: int) -> float:
    """A process's proportional share of the memory in RAM, in MB (10^6 bytes). Gone: none.

    Raises:
        PermissionError: we may not look; root with the capability SYS_PTRACE may.
    """
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except _GONE:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def shares_mb(root: int, group_of: GroupOf) -> dict[Hashable, float]:
    """What each group of processes below one holds; those of group None are left out."""
    held: defaultdict[Hashable, float] = defaultdict(float)
    for pid in descendants(root):
        group = group_of(pid)
        if group is not None:
            held[group] += share_mb(pid)
    return dict(held)


@dataclass(slots=True)
class Peaks:
    """The most that each group below a process has held at a time while the block lasted."""

    root: int
    group_of: GroupOf
    by_group: dict[Hashable, float] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _looks: threading.Thread | None = None

    @property
    def highest_mb(self) -> float:
        """Of the largest group."""
        return max(self.by_group.values(), default=0.0)

    def __enter__(self) -> Self:
        self._looks = threading.Thread(target=self._look, name="peaks")
        self._looks.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._looks is not None:
            self._looks.join()

    def _look(self) -> None:
        while not self._over.wait(_SAMPLE_EVERY_S):
            for group, held_mb in shares_mb(self.root, self.group_of).items():
                self.by_group[group] = max(held_mb, self.by_group.get(group, 0.0))
