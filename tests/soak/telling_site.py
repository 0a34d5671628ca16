"""A web site that tells whoever asks all secrets that it knows, in encodings of its choice."""

import gzip
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Final
from urllib.parse import quote

from aiohttp import web

from tests.builders.archives import a_zip, lines
from tests.builders.encodings import ENCODINGS, Encoding, encoded, fits

_DEEPEST: Final = 3


def told(secrets: Iterable[str], dice: Random) -> list[bytes]:
    """Each secret among other words, in up to three encodings that lie over one another."""
    return [_in_encodings(secret, dice) for secret in secrets]


def trace_of(secrets: Iterable[str], dice: Random) -> bytes:
    """A trace archive that holds the secrets in members of several kinds."""
    secrets = tuple(secrets)

    def members() -> Iterable[str]:
        return (text.decode("latin-1") for text in told(secrets, dice))

    events = ({"type": "log", "callId": "call@1", "message": text} for text in members())
    requests = (
        {"type": "resource-snapshot", "snapshot": {"request": {"url": "http://a.test/", "b": text}}}
        for text in members()
    )
    body = b"\n".join(told(secrets, dice))
    return a_zip(
        {
            "0-trace.trace": lines(*events),
            "0-trace.network": lines(*requests),
            "attachments/note": body,
            "resources/packed.gz": gzip.compress(body),
            "resources/inner.zip": a_zip({"a.txt": body}),
        }
    )


@asynccontextmanager
async def telling_site(
    secrets: Mapping[str, tuple[str, ...]], *, seed: object, tls: ssl.SSLContext
) -> AsyncIterator[str]:
    """Its address, for as long as the block lasts; the secrets are by path."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", _teller(secrets, seed))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _teller(
    secrets: Mapping[str, tuple[str, ...]], seed: object
) -> Callable[[web.Request], object]:
    dice = Random(f"{seed} site")

    async def tell(request: web.Request) -> web.Response:
        known = secrets[request.path]
        heard = {
            "headers": dict(request.headers),
            "query": dict(request.query),
            "body": (await request.read()).decode("utf-8", "replace"),
        }
        content = b"\n".join((json.dumps(heard).encode(), *told(known, dice)))
        one = dice.choice(known)
        headers = {"X-Echo": quote(one), "Set-Cookie": f"seen={quote(one, safe='')}"}
        answer = web.Response(body=content, content_type="text/plain", headers=headers)
        answer.enable_compression()
        return answer

    return tell


def _in_encodings(secret: str, dice: Random) -> bytes:
    while True:
        chain = _chain(dice)
        if fits(chain, secret):
            try:
                return encoded(f"it is {secret} today", chain)
            except UnicodeError:  # one of them takes text, and got none
                continue


def _chain(dice: Random) -> list[Encoding]:
    return dice.choices(ENCODINGS, k=dice.randint(1, _DEEPEST))
