"""How much memory processes use, and how much there is."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

_KB_PER_MB: Final = 1024


def used_mb(pids: Iterable[int]) -> float:
    """What processes use together; what several of them map from one file counts once."""
    own = shared = 0
    for pid in pids:
        parts = _status_kb(pid)
        own += parts.get("RssAnon", 0) + parts.get("RssShmem", 0)
        shared = max(shared, parts.get("RssFile", 0))
    return (own + shared) / _KB_PER_MB


def _status_kb(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if line.startswith("Rss"))
    return {name: int(value.split()[0]) for name, value in pairs}
