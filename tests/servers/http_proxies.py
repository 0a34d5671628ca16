"""Real proxies on loopback: proxy.py for HTTP, and a SOCKS 5 server."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders.patience import LONG_S
from tests.servers.tcp import tcp_server


@contextlib.asynccontextmanager
async def http_proxy(folder: Path, *, basic_auth: str | None = None) -> AsyncIterator[str]:
    """Yields host and port of a running proxy.py; `basic_auth` is `user:password`."""
    port_file = folder / "port"
    arguments = ["--hostname", "127.0.0.1", "--port", "0", "--port-file", str(port_file)]
    arguments += ["--num-workers", "1", "--num-acceptors", "1", "--data-dir", str(folder)]
    arguments += ["--timeout", "600"]  # of a client that says nothing, as a stopped one does
    if basic_auth is not None:
        arguments += ["--basic-auth", basic_auth]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "proxy",
        *arguments,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield f"127.0.0.1:{await _port_in(port_file)}"
    finally:
        process.terminate()
        await process.wait()


async def _port_in(file: Path) -> str:
    """The port, once proxy.py has written it down; it tells by no other means that it is ready."""
    async with asyncio.timeout(LONG_S):
        while not (port := _text(file)):  # noqa: ASYNC110 - a file gives no event
            await asyncio.sleep(0.02)
    return port


def _text(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


@dataclass(slots=True)
class Socks:
    """A running SOCKS 5 proxy."""

    place: str
    asked_for: list[str] = field(default_factory=list)
    """Each target as the client named it: an address, or a name to resolve."""


@contextlib.asynccontextmanager
async def socks_proxy(*, user: str, password: str) -> AsyncIterator[Socks]:
    """Insists on user and password; sends every name to 127.0.0.1."""
    proxy = Socks(place="")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await _let_in(reader, writer, f"{user}:{password}"):
            await _connect(proxy, reader, writer)

    async with tcp_server(serve) as port:
        proxy.place = f"127.0.0.1:{port}"
        yield proxy


async def _let_in(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, expected: str
) -> bool:
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x02")
    _, length = await reader.readexactly(2)
    user = (await reader.readexactly(length)).decode()
    password = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
    welcome = f"{user}:{password}" == expected
    writer.write(b"\x01\x00" if welcome else b"\x01\x01")
    await writer.drain()
    return welcome


async def _connect(
    proxy: Socks, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    kind = (await reader.readexactly(4))[3]
    if kind == 3:
        asked_for = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
    else:
        asked_for = socket.inet_ntoa(await reader.readexactly(4))
    port = int.from_bytes(await reader.readexactly(2))
    proxy.asked_for.append(asked_for)
    onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
    try:
        await asyncio.gather(_pump(reader, onward_writer), _pump(onward_reader, writer))
    finally:
        onward_writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
