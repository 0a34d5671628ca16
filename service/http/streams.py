"""Bodies that are too long to be read whole, and the files that they become."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from service.http.errors import SlowBodyError

_BLOCK_BYTES: Final = 1024 * 1024


async def in_time(
    parts: AsyncIterator[bytes], *, patience_s: float, mend: str
) -> AsyncIterator[bytes]:
    """The parts of a body, as long as none lets us wait for too long.

    Raises:
        SlowBodyError: nothing came for too long.
    """
    while True:
        try:
            async with asyncio.timeout(patience_s):
                part = await anext(parts, None)
        except TimeoutError as problem:
            raise SlowBodyError(
                f"Nothing came for {patience_s:g} s; {mend}.", headers={"connection": "close"}
            ) from problem
        if part is None:
            return
        yield part


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            seen.update(block)
    return seen.hexdigest()
