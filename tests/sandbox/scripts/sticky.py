"""Leaves folders that only their owner may empty."""

import tempfile
from pathlib import Path


def fill(place: Path) -> None:
    inner = place / "in/it"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent, place):
        (folder / "file").touch()
        folder.chmod(0o1777)


fill(Path("folder"))
fill(Path(tempfile.mkdtemp(dir="/tmp")))
