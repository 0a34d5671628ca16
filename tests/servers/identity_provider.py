"""An OpenID provider that others wrote (oidc-provider-mock), in a process on loopback."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

import aiohttp

_PROGRAM: Final = """
import sys
from oidc_provider_mock import run_server_in_thread
with run_server_in_thread(require_client_registration=True, require_nonce=True) as server:
    print(server.server_port, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """Where it is."""

    url: str

    async def know(self, http: aiohttp.ClientSession, subject: str, **claims: Any) -> None:
        """Have it say this of somebody from now on."""
        async with http.put(f"{self.url}/users/{subject}", json=claims) as answer:
            assert answer.status == 204, await answer.text()

    async def register(self, http: aiohttp.ClientSession, redirect_url: str) -> tuple[str, str]:
        """Make the service known: its id and its secret."""
        body = {"redirect_uris": [redirect_url]}
        async with http.post(f"{self.url}/oauth2/clients", json=body) as answer:
            made = await answer.json()
            return made["client_id"], made["client_secret"]

    async def answer(self, http: aiohttp.ClientSession, url: str, **form: str) -> str:
        """Answer its page, to which the service sent a browser: where it sends that back.

        `form`: `sub` of whoever signs in, or `action="deny"`.
        """
        async with http.post(url, data=form, allow_redirects=False) as answer:
            assert answer.status in {302, 303}, await answer.text()
            return urljoin(url, answer.headers["location"])


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """Serve it until the context ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        yield IdentityProvider(f"http://localhost:{int(child.stdout.readline())}")
        child.communicate()
