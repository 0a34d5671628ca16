"""uvicorn on loopback without its pauses: it looks ten times a second whether it is to stop."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import uvicorn

_GRACE_S: Final = 1.0
"""For answers that are under way when the test ends."""


@asynccontextmanager
async def serve_promptly(config: uvicorn.Config) -> AsyncIterator[str]:
    """Where it listens; connections that are left end with it."""
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    sock = socket.create_server(("127.0.0.1", 0))
    # As the service's own: without it each answer of two writes takes 40 ms on a kept connection.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await server.startup(sockets=[sock])
    await server.on_tick(0)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        await _stop(server)
        sock.close()


async def _stop(server: uvicorn.Server) -> None:
    for listener in server.servers:
        listener.close()
    state = server.server_state
    for connection in list(state.connections):
        connection.shutdown()
    give_up = time.monotonic() + _GRACE_S
    while (state.connections or state.tasks) and time.monotonic() < give_up:  # noqa: ASYNC110 - uvicorn tells it in no other way
        await asyncio.sleep(0.001)
    for task in state.tasks:
        task.cancel()
    await asyncio.sleep(0)
