"""The proxy of one run, for a browser that may not, or cannot, connect by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runners.net.http.exchange import Route
from runners.runner import RunContext
from runners.scripting.proxy.client_certificates import CertificateRoute
from runners.scripting.proxy.egress_proxy import OWN_CERTIFICATES, EgressProxy, UnreachedTarget
from runners.scripting.proxy.egress_routes import DirectRoute, EgressRoute
from runners.scripting.proxy.socket_owner import admit_owner_of
from runners.scripting.trust.roots import Roots

if TYPE_CHECKING:
    from runners.net.tls.local_authority import LocalAuthority


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProxy:
    """The open proxy of one run."""

    is_binding: bool
    """Whether all traffic has to use it, because the operator has set egress rules."""
    proxy: EgressProxy
    certificate_route: CertificateRoute | None
    """Presents client certificates. None: the run has none."""

    @property
    def url(self) -> str:
        """The URL at which it listens."""
        return self.proxy.url

    @property
    def unreached(self) -> tuple[UnreachedTarget, ...]:
        """The targets that the run could not reach."""
        return self.proxy.unreached

    @property
    def notes(self) -> tuple[str, ...]:
        """The proxy's sentences for the run's log, each once."""
        unreached = (one.why for one in self.unreached)
        troubles = () if self.certificate_route is None else self.certificate_route.problems
        return tuple(dict.fromkeys((*unreached, *self.proxy.notes, *troubles)))


def build_proxy_settings(proxy: RunProxy | None) -> dict[str, object]:
    """Build the proxy's part of the settings that settings.cjs reads."""
    if proxy is None:
        return {}
    server = {"server": proxy.url}
    return {
        "gate": proxy.url if proxy.is_binding else None,
        "proxy": server,
        "certificatesProxy": {**server, "username": OWN_CERTIFICATES, "password": ""},
    }


@asynccontextmanager
async def open_run_proxy(
    ctx: RunContext, roots: Roots, home: Path
) -> AsyncIterator[RunProxy | None]:
    """Open the run's proxy for the block. None: the run's browser connects by itself.

    `home`: a folder that belongs to the run's user.

    Raises:
        OSError: there is no port or descriptor left.
    """
    made = _make_proxy(ctx, roots, home)
    if made is None:
        yield None
        return
    await made.proxy.open()
    try:
        yield made
    finally:
        await made.proxy.close()
        if made.certificate_route is not None:
            await made.certificate_route.close()


def _make_proxy(ctx: RunContext, roots: Roots, home: Path) -> RunProxy | None:
    rules = ctx.network.egress
    is_binding = bool(rules.allow or rules.deny)
    if not is_binding and roots.authority is None:
        return None
    direct = DirectRoute(ctx.network)
    certificate_route = _make_certificate_route(ctx, direct, roots.authority)
    proxy = EgressProxy(certificate_route or direct, admits=admit_owner_of(home))
    return RunProxy(is_binding=is_binding, proxy=proxy, certificate_route=certificate_route)


def _make_certificate_route(
    ctx: RunContext, way: EgressRoute, authority: "LocalAuthority | None"
) -> CertificateRoute | None:
    if authority is None:
        return None
    route = Route.choose(None, ctx.client_certificates)
    return CertificateRoute(way, route, authority=authority, contexts=ctx.network.tls)
