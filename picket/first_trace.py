"""Fetches the trace of the first browser check that fails, and says how to look at it."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from picket.api_client import ApiRefusedError, ApiUnreachableError
from picket.board import BAD, NewResult
from picket.ran_on import trace_command
from picket.terminal import near_path


class Files(Protocol):
    """Where files of results are."""

    async def file(self, path: str) -> bytes:
        """One of them."""


class FirstTrace:
    """One line, once: the others are had by the API."""

    def __init__(self, files: Files, folder: Path, tell: Callable[[str], None]) -> None:
        """`folder`: for the trace."""
        self._files = files
        self._folder = folder
        self._tell = tell
        self._found: asyncio.Queue[NewResult] = asyncio.Queue()
        self._is_found = False

    def look_among(self, results: Iterable[NewResult]) -> None:
        """Remember the first that has one."""
        failed = (one for one in results if one.status in BAD and one.trace is not None)
        first = next(failed, None)
        if first is not None and not self._is_found:
            self._is_found = True
            self._found.put_nowait(first)

    async def fetch(self) -> None:
        """Wait for one, and tell the command; one that cannot be had makes room for the next."""
        while not await self._is_told(await self._found.get()):
            self._is_found = False

    async def _is_told(self, result: NewResult) -> bool:
        if result.trace is None:
            return False
        try:
            content = await self._files.file(result.trace)
            path = await asyncio.to_thread(self._put, f"{result.id}.zip", content)
        except (ApiRefusedError, ApiUnreachableError, OSError):
            return False
        command = trace_command(path)
        self._tell(f"trace    of “{result.check_name}”: {command}")
        return True

    def _put(self, name: str, content: bytes) -> Path:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / name
        path.write_bytes(content)
        return near_path(path)
