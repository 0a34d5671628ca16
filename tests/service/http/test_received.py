"""What has come by now is told at once, and nothing that comes later is lost by asking."""

import asyncio

from starlette.types import Message

from service.http.fast_path import received


async def test_a_message_that_is_there_is_given_at_once() -> None:
    line: asyncio.Queue[Message] = asyncio.Queue()
    line.put_nowait({"type": "http.request"})
    assert received(line.get) == {"type": "http.request"}


async def test_asking_too_early_takes_nothing_away() -> None:
    line: asyncio.Queue[Message] = asyncio.Queue()
    assert received(line.get) is None
    line.put_nowait({"type": "http.disconnect"})
    assert received(line.get) == {"type": "http.disconnect"}
