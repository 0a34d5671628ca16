"""Secrets among those who talk: a site that tells them, a proxy that asks for one, a recording."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import trustme

from tests.builders.certificates import issued
from tests.faults.scene import LOCATION_KEY, Scene
from tests.servers.http_certificates import good, pem_of, wants_client
from tests.servers.http_proxies import socks_proxy
from tests.soak.hoard import Hoard, hoard_of
from tests.soak.recording import Recording
from tests.soak.search import Search, Searched
from tests.soak.telling_site import telling_site, trace_of


@dataclass(frozen=True, slots=True)
class Secrecy:
    """Made by `secrecy_of`."""

    hoard: Hoard
    recording: Recording
    folder: Path
    site: str
    proxy: str
    """Host and port of the proxy that checks go through."""
    certificate: Mapping[str, Any]
    """What the site asks its visitors for, as a person sends it to the service."""

    @property
    def environ(self) -> Mapping[str, str]:
        """What every agent is started with."""
        return {**self.hoard.of_agents(), "QUICK_TRACE": str(self.folder / "trace.zip")}

    def requests(self) -> list[dict[str, Any]]:
        """Of checks that hold secrets, and hear them."""
        return self.hoard.requests(self.site)

    async def begin(self, scene: Scene) -> None:
        """Give the service what each check gets; they go through the proxy, with a password."""
        for variable in self.hoard.variables():
            await scene.ask("POST", "/v1/variables", variable)
        await scene.ask("POST", "/v1/client-certificates", dict(self.certificate))
        [location] = await scene.ask("GET", "/v1/private-locations")
        password = quote(self.hoard.of_locations_proxy, safe="")
        change = {"name": "Soak", "proxyUrl": f"socks5h://soak:{password}@{self.proxy}"}
        await scene.ask("PUT", f"/v1/private-locations/{location['id']}", change)

    def search(self, scene: Scene) -> Searched:
        """Look for all secrets in all that agents sent and logged; it blocks."""
        logs = (line for agent in scene.agents for line in agent.lines)
        search = Search(self.hoard.by_name(), own_key=LOCATION_KEY)
        return search.through(self.recording, self.folder / "files", logs=logs)


@asynccontextmanager
async def secrecy_of(scene: Scene, *, seed: object) -> AsyncIterator[Secrecy]:
    """From now on all is recorded that agents say to the scene's service."""
    authority, folder = trustme.CA(), scene.folder / "secrecy"
    cert, key = issued(authority)
    hoard = hoard_of(seed, client_key=key)
    roots = pem_of(authority).decode()
    shown = {"cert": cert, "key": hoard.client_key, "passphrase": hoard.passphrase, "ca": roots}
    tls = wants_client(good(authority), authority)
    folder.mkdir()
    recording = Recording(folder / "said")
    scene.proxy.hear = recording.hear
    told = hoard.told_at()
    (folder / "trace.zip").write_bytes(trace_of(told["/leaving"], Random(f"{seed} trace")))
    async with (
        telling_site(told, seed=seed, tls=tls) as site,
        socks_proxy(user="soak", password=hoard.of_locations_proxy) as proxy,
    ):
        yield Secrecy(hoard, recording, folder, site, proxy.place, {"host": "127.0.0.1", **shown})
