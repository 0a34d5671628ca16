"""The connection to the service: its client, proxy and roots."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from agent.api_client.client import ServiceEndpoint
from agent.api_client.proxies import Proxy, choose_proxy, is_loopback
from agent.settings import Settings

_IDLE_LIMIT_S: Final = 30.0
"""Connections are closed after this, before a load balancer does."""
_CONNECTIONS: Final = 16
_CLOSE_TLS_S: Final = 0.05
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000),
)
"""A connection whose other end is gone without a word breaks after 20 s (in ms above) when
something was sent on it, and after 30 s when we only wait, as a long poll does."""


def build_endpoint(settings: Settings, *, agent_id: str, version: str) -> ServiceEndpoint:
    """Where the service is and how to get in, by the settings."""
    return ServiceEndpoint(
        url=settings.service_url,
        api_key=settings.api_key,
        agent_id=agent_id,
        version=version,
        proxy=find_service_proxy(settings),
        # On this machine there is no network to spare, and gzip is the dearest part of a batch.
        compresses=not is_loopback(settings.service_url),
    )


def find_service_proxy(settings: Settings) -> Proxy | None:
    """The proxy on the way to the service. None: direct."""
    return choose_proxy(
        settings.service_url,
        https_proxy=settings.https_proxy,
        http_proxy=settings.http_proxy,
        no_proxy=settings.no_proxy,
    )


@asynccontextmanager
async def open_session(settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    """The pool, for as long as the block lasts; it heeds the settings alone, no environment."""
    proxy = find_service_proxy(settings)
    secure = settings.service_url.startswith("https:") or (
        proxy is not None and proxy.url.startswith("https:")
    )
    connector = aiohttp.TCPConnector(
        limit=_CONNECTIONS,
        keepalive_timeout=_IDLE_LIMIT_S,
        socket_factory=_open_socket,
        resolver=aiohttp.ThreadedResolver(),
        ssl=_build_ssl_context(settings) if secure else True,
    )
    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
        yield session
    if secure:
        await asyncio.sleep(_CLOSE_TLS_S)  # aiohttp leaves closing TLS to the next turns


def _open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices when its other end is gone."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    for level, option, value in _KEEPALIVE:
        opened.setsockopt(level, option, value)
    return opened


def _build_ssl_context(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if settings.extra_ca_certs is not None:
        context.load_verify_locations(cafile=settings.extra_ca_certs)
    return context
