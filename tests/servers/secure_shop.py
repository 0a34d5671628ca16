"""A shop over TLS that answers pages, `fetch` and WebSockets, and says by title how they went."""

import base64
import hashlib
import ssl
from asyncio import StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests.servers.http_origin import Asked, Origin, http_origin, reply

_GUID: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PAGE: Final = b"""<!doctype html><h1>Good tea</h1><script>
const opened = new Promise((done) => {
  const socket = new WebSocket(`wss://${location.host}/socket`);
  socket.onopen = () => done('open');
  socket.onerror = () => done('refused');
});
const asked = fetch('/data').then((answer) => answer.text(), () => 'refused');
Promise.all([asked, opened]).then((seen) => { document.title = seen.join(' '); });
</script>"""
TITLE: Final = "data open"
"""When all of it went well."""


@asynccontextmanager
async def secure_shop(tls: ssl.SSLContext) -> AsyncIterator[Origin]:
    pages = {
        "/": reply(PAGE, content_type="text/html"),
        "/data": reply(b"data"),
        "/socket": _open_socket,
    }
    async with http_origin(pages, tls=tls) as origin:
        yield origin


async def _open_socket(asked: Asked, writer: StreamWriter) -> None:
    key = asked.one("sec-websocket-key") or ""
    digest = hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()
    accept = base64.b64encode(digest).decode()
    lines = ("HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: upgrade")
    writer.write("\r\n".join((*lines, f"sec-websocket-accept: {accept}", "", "")).encode())
    await writer.drain()
