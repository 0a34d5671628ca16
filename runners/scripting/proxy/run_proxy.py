"""The gate of one run: there is one when its browser may not, or cannot, connect by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runners.net.http.exchange import Route
from runners.runner import RunContext
from runners.scripting.proxy.client_certificates import Presenting
from runners.scripting.proxy.egress_proxy import OWN_CERTIFICATES, EgressGate, Unreached
from runners.scripting.proxy.egress_routes import Straight, Way
from runners.scripting.proxy.socket_owner import came_from
from runners.scripting.trust.roots import Roots

if TYPE_CHECKING:
    from runners.net.tls.local_authority import LocalAuthority


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGate:
    """An open gate."""

    is_binding: bool
    """Whether nothing may go past it: the operator has egress rules then."""
    gate: EgressGate
    presenting: Presenting | None
    """None: there are no client certificates."""

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
        return tuple(dict.fromkeys((*unreached, *self.gate.notes, *troubles)))


def proxies(gate: RunGate | None) -> dict[str, object]:
    """What settings.cjs reads of it."""
    if gate is None:
        return {}
    server = {"server": gate.url}
    return {
        "gate": gate.url if gate.is_binding else None,
        "proxy": server,
        "certificatesProxy": {**server, "username": OWN_CERTIFICATES, "password": ""},
    }


@asynccontextmanager
async def run_gate(ctx: RunContext, roots: Roots, home: Path) -> AsyncIterator[RunGate | None]:
    """For as long as the block lasts. None: the run's browser connects by itself.

    `home`: a folder of the run's user.

    Raises:
        OSError: there is no port or descriptor left.
    """
    made = _made(ctx, roots, home)
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


def _made(ctx: RunContext, roots: Roots, home: Path) -> RunGate | None:
    rules = ctx.network.egress
    is_binding = bool(rules.allow or rules.deny)
    if not is_binding and roots.authority is None:
        return None
    straight = Straight(ctx.network)
    presenting = _presenting(ctx, straight, roots.authority)
    gate = EgressGate(presenting or straight, admits=came_from(home))
    return RunGate(is_binding=is_binding, gate=gate, presenting=presenting)


def _presenting(ctx: RunContext, way: Way, authority: "LocalAuthority | None") -> Presenting | None:
    if authority is None:
        return None
    route = Route.of(None, ctx.client_certificates)
    return Presenting(way, route, authority=authority, contexts=ctx.network.tls)
