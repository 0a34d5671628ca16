"""Work in a thread that is over when nobody waits for it any more."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

GivenT = ParamSpec("GivenT")
AnswerT = TypeVar("AnswerT")


async def to_its_end(
    function: Callable[GivenT, AnswerT], *given: GivenT.args, **named: GivenT.kwargs
) -> AnswerT:
    """What the function says; whoever is cancelled meanwhile goes on when it has returned."""
    working = asyncio.ensure_future(asyncio.to_thread(function, *given, **named))
    try:
        return await asyncio.shield(working)
    finally:
        if not working.done():
            await asyncio.wait({working})
