"""The gate of one run: there is one when its browser may not, or cannot, connect by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from runners.kit.egress_gate import OWN_CERTIFICATES, EgressGate, Unreached
from runners.kit.http_route import Route, with_scheme
from runners.kit.peers import came_from
from runners.kit.presenting import Presenting
from runners.kit.runner import RunContext
from runners.kit.trust import Roots
from runners.kit.ways_out import OWN_MACHINE, Parted, Straight, ThroughProxy, Way, is_http

if TYPE_CHECKING:
    from runners.kit.local_authority import LocalAuthority

_LEFT_ASIDE: Final = (
    "The location's proxy was left aside: with egress rules or client certificates, browsers take "
    "proxies of the kind http:// alone."
)

_BYPASS: Final = ",".join(
    ["<-loopback>", *(f"[{host}]" if ":" in host else host for host in OWN_MACHINE)]
)
"""In Chromium's words; the first one keeps Playwright from taking the others back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGate:
    """An open gate."""

    is_binding: bool
    """Whether nothing may go past it: the operator has egress rules then."""
    gate: EgressGate
    presenting: Presenting | None
    """None: there are no client certificates."""
    reasons: tuple[str, ...]
    """Why it does not do all that was asked for."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.gate.url

    @property
    def unreached(self) -> tuple[Unreached, ...]:
        """What the run wanted to reach and did not."""
        return self.gate.unreached

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the run's log has to know, each sentence once."""
        unreached = (one.why for one in self.unreached)
        troubles = () if self.presenting is None else self.presenting.troubles
        return tuple(dict.fromkeys((*unreached, *self.reasons, *self.gate.notes, *troubles)))


def proxies(
    gate: RunGate | None, proxy_url: str | None, *, serves_itself: bool = False
) -> dict[str, object]:
    """What settings.cjs reads of it. A run that `serves_itself` has servers on this machine."""
    if gate is None:
        direct = proxy_of(proxy_url)
        if direct is not None and serves_itself:
            direct["bypass"] = _BYPASS
        return {"gate": None, "proxy": direct, "certificatesProxy": direct}
    server = {"server": gate.url}
    return {
        "gate": gate.url if gate.is_binding else None,
        "proxy": server,
        "certificatesProxy": {**server, "username": OWN_CERTIFICATES, "password": ""},
    }


def proxy_of(url: str | None) -> dict[str, str] | None:
    """The location's proxy in Playwright's form."""
    if url is None:
        return None
    parts = urlsplit(with_scheme(url))
    port = "" if parts.port is None else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    proxy = {"server": f"{parts.scheme}://{host}{port}"}
    if parts.username is not None:
        proxy |= {"username": unquote(parts.username), "password": unquote(parts.password or "")}
    return proxy


@asynccontextmanager
async def run_gate(
    ctx: RunContext, roots: Roots, home: Path, *, serves_itself: bool = False
) -> AsyncIterator[RunGate | None]:
    """For as long as the block lasts. None: the run's browser connects by itself.

    `home`: a folder of the run's user. A run that `serves_itself` has servers on this machine.

    Raises:
        OSError: there is no port or descriptor left.
    """
    made = _made(ctx, roots, home, serves_itself=serves_itself)
    if made is None:
        yield None
        return
    await made.gate.open()
    try:
        yield made
    finally:
        await made.gate.close()
        if made.presenting is not None:
            await made.presenting.close()


def _made(ctx: RunContext, roots: Roots, home: Path, *, serves_itself: bool) -> RunGate | None:
    rules = ctx.network.egress
    is_binding = bool(rules.allow or rules.deny)
    if not is_binding and roots.authority is None:
        return None
    way, notes = _way(ctx, serves_itself=serves_itself)
    presenting = _presenting(ctx, way, roots.authority)
    gate = EgressGate(presenting or way, admits=came_from(home))
    return RunGate(is_binding=is_binding, gate=gate, presenting=presenting, reasons=notes)


def _way(ctx: RunContext, *, serves_itself: bool) -> tuple[Way, tuple[str, ...]]:
    straight = Straight(ctx.network)
    if ctx.proxy_url is None:
        return straight, ()
    if not is_http(ctx.proxy_url):
        return straight, (_LEFT_ASIDE,)
    through = ThroughProxy(ctx.network, ctx.proxy_url)
    return Parted(straight, through) if serves_itself else through, ()


def _presenting(ctx: RunContext, way: Way, authority: "LocalAuthority | None") -> Presenting | None:
    if authority is None:
        return None
    route = Route.of(None, ctx.client_certificates)
    return Presenting(way, route, authority=authority, contexts=ctx.network.tls)
