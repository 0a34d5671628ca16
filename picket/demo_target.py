"""Something to look at: a web shop, an echo, a name server and a nightly job, all on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import aiohttp
import msgspec
from aiohttp import web

from picket.demo_certificate import DemoCertificate, make_certificate
from picket.demo_dns import DemoDatagrams, DemoZone, serve_stream
from picket.demo_http import DemoShop

HOST: Final = "127.0.0.1"
PING_EVERY_S: Final = 5.0
_PING_LIMIT_S: Final = 3.0
_ECHO_LIMIT_S: Final = 10.0


Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class DemoPorts(msgspec.Struct, frozen=True, kw_only=True):
    """Where the demo target listens; kept, so that the starter checks stay right."""

    http: Port = 0
    https: Port = 0
    echo: Port = 0
    dns: Port = 0


@dataclass(frozen=True, slots=True)
class DemoTarget:
    """The running demo target."""

    ports: DemoPorts
    certificate: DemoCertificate


@asynccontextmanager
async def demo_target(folder: Path, wanted: DemoPorts) -> AsyncIterator[DemoTarget]:
    """Serve until the block ends; wanted ports that are taken by now give way to free ones."""
    certificate = make_certificate(folder, host=HOST)
    async with AsyncExitStack() as stack:
        shop = web.AppRunner(DemoShop().application(), access_log=None)
        await shop.setup()
        stack.push_async_callback(shop.cleanup)
        http, https = _listener(wanted.http), _listener(wanted.https)
        await web.SockSite(shop, http).start()
        await web.SockSite(shop, https, ssl_context=certificate.server_context()).start()
        echo = await asyncio.start_server(_echo, sock=_listener(wanted.echo))
        stack.callback(echo.close)
        dns_port = await _serve_names(stack, wanted.dns)
        ports = DemoPorts(
            http=_port(http), https=_port(https), echo=_port(echo.sockets[0]), dns=dns_port
        )
        yield DemoTarget(ports, certificate)


def _listener(wanted: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """A bound socket on the wanted port, or on a free one when it is taken."""
    bound = socket.socket(socket.AF_INET, kind)
    if kind is socket.SOCK_STREAM:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, wanted))
    except OSError:
        bound.bind((HOST, 0))
    return bound


def _port(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes, as it comes."""
    try:
        async with asyncio.timeout(_ECHO_LIMIT_S):
            while heard := await reader.read(4096):
                writer.write(b"echo: " + heard)
                await writer.drain()
    except (TimeoutError, ConnectionError):
        return
    finally:
        writer.close()


async def _serve_names(stack: AsyncExitStack, wanted: int) -> int:
    """The zone by UDP and TCP on the same port, as name servers do."""
    zone = DemoZone()
    stream = _listener(wanted)
    datagram = _listener(_port(stream), socket.SOCK_DGRAM)
    if _port(datagram) != _port(stream):
        stream.close()
        stream = _listener(_port(datagram))
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(partial(DemoDatagrams, zone), sock=datagram)
    stack.callback(transport.close)
    server = await asyncio.start_server(partial(serve_stream, zone), sock=stream)
    stack.callback(server.close)
    return _port(datagram)


async def ping_for_ever(url: str) -> None:
    """Play the nightly job that reports to its heartbeat check, through the agent's ping port."""
    limit = aiohttp.ClientTimeout(total=_PING_LIMIT_S)
    async with aiohttp.ClientSession(timeout=limit) as session:
        while True:
            try:
                async with session.post(url, headers={"user-agent": "nightly-job/1.0"}):
                    pause_s = PING_EVERY_S
            except (aiohttp.ClientError, TimeoutError):
                # The agent is not there yet, or not any more: the check is to notice, not we.
                pause_s = 1.0
            await asyncio.sleep(pause_s)
