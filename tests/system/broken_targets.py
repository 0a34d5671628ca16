"""Targets that are broken in one way each, and the checks that look at them."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.servers.broken_web import broken_web
from tests.servers.dns import dns_server
from tests.servers.tcp import refusing_port, tcp_server
from tests.system.run_command import CheckDocument

Target = Callable[[], AbstractAsyncContextManager[CheckDocument]]


@dataclass(frozen=True)
class Broken:
    """A target that is broken in one way, and what must be said about it."""

    how: str
    target: Target
    kind: str
    words: tuple[str, ...]
    runs_out_of_time: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    status: str = "FAILED"


def asserting(source: str, comparison: str, target: str, **more: str) -> dict[str, str]:
    return {"source": source, "comparison": comparison, "target": target, **more}


def web(path: str, *, type: str = "URL", tls: ssl.SSLContext | None = None, **more: Any) -> Target:  # noqa: A002 - the document's word
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        async with broken_web(tls=tls) as address:
            request = {"url": address + path, **more.get("request", {})}
            yield {"type": type, **more, "request": request}

    return target


def nobody(document: Callable[[int], CheckDocument]) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        with refusing_port() as port:
            yield document(port)

    return target


def fixed(document: CheckDocument) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        yield document

    return target


def tcp(serve: Any, *, tls: ssl.SSLContext | None = None, **more: Any) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        async with tcp_server(serve, tls=tls) as port:
            request = {"hostname": "127.0.0.1", "port": port, **more.get("request", {})}
            yield {"type": "TCP", **more, "request": request}

    return target


ZONE = {("shop.test.", "A"): ["10.1.2.3"]}


def names(
    query: str = "shop.test",
    *,
    more: CheckDocument | None = None,
    request: CheckDocument | None = None,
    **habits: Any,
) -> Target:
    @contextlib.asynccontextmanager
    async def target() -> AsyncIterator[CheckDocument]:
        async with dns_server(ZONE, **habits) as server:
            asked = {"query": query, "nameServer": "127.0.0.1", "port": server.port}
            yield {"type": "DNS", "request": {**asked, **(request or {})}, **(more or {})}

    return target


def heartbeat(silent_for_s: float | None, *, period_s: float = 60, grace_s: float = 30) -> Target:
    return fixed(
        {
            "type": "HEARTBEAT",
            "periodSeconds": period_s,
            "graceSeconds": grace_s,
            "silentForSeconds": silent_for_s,
        }
    )


def ping(**more: Any) -> Target:
    return fixed(
        {
            "type": "ICMP",
            **more,
            "request": {"hostname": "127.0.0.1", "pingCount": 1, **more.get("request", {})},
        }
    )
