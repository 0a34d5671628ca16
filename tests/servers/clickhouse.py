"""ClickHouse's HTTP interface, as far as its client uses it, over the engine in this process."""

import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from chdb.session import Session

USER = "picket:hunter2"
_MOST_BYTES = 64 * 1024 * 1024


@asynccontextmanager
async def serve_clickhouse() -> AsyncIterator[str]:
    """Serve an empty one; its URL has the user and the password."""
    with tempfile.TemporaryDirectory() as folder:
        interface = _Interface(Path(folder))
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_post("/", interface.answer)
        try:
            async with TestServer(app) as server:
                yield f"http://{USER}@127.0.0.1:{server.port}/default?compress=false"
        finally:
            interface.session.close()


class _Interface:
    """Answers statements; data goes in and out in the format Native."""

    def __init__(self, folder: Path) -> None:
        self.session: Any = Session(str(folder / "engine"))
        self._file = folder / "arriving.native"

    async def answer(self, request: web.Request) -> web.Response:
        if request.headers.get("authorization") != f"Basic {b64encode(USER.encode()).decode()}":
            return web.Response(status=403, text="Code: 516. DB::Exception: no such user")
        for name, value in request.query.items():
            if name.startswith("param_"):
                quoted = value.replace("\\", "\\\\").replace("'", "\\'")
                self.session.query(f"SET {name}='{quoted}'")
        statement, has_format, data = (await request.read()).partition(b"FORMAT Native")
        text = statement.decode()
        try:
            if text.startswith("INSERT"):
                self._file.write_bytes(data.removeprefix(b"\n"))
                self.session.query(f"{text} SELECT * FROM file('{self._file}', 'Native')")
                return web.Response()
            found = self.session.query(text, "Native" if has_format else "TabSeparated")
        except RuntimeError as problem:
            return web.Response(status=500, text=str(problem))
        return web.Response(body=found.bytes() or b"")
