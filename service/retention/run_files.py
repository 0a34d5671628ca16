"""Removing old files of runs."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import structlog

log = structlog.get_logger()


def remove_old(folder: Path, *, before_ms: int) -> int:
    """Remove the files of runs of which nothing has arrived since; of how many runs.

    A run's folder changes when a file arrives, and never afterwards.
    """
    return sum(_remove(run) for run in _runs(folder) if _changed_ms(run) < before_ms)


def _runs(folder: Path) -> Iterator[Path]:
    """The folders of all runs, of all locations."""
    for location in _folders(folder):
        yield from _folders(location)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(one.path) for one in entries if one.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _changed_ms(folder: Path) -> float:
    try:
        return folder.stat().st_mtime * 1000
    except FileNotFoundError:
        return float("inf")


def _remove(folder: Path) -> bool:
    try:
        shutil.rmtree(folder)
    except OSError as problem:
        log.warning("retention.file_stays", folder=str(folder), reason=problem.strerror)
        return False
    return True
