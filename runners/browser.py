"""Browser checks: a script drives Chromium; each page is measured."""

import asyncio
from typing import Final

import msgspec

from contract.checks import BrowserSpec
from contract.evidence import TlsFacts
from contract.requests import IpFamily
from contract.result import CheckFailed, LogLine
from contract.targets import ascii_host
from runners.net.sockets import connect
from runners.net.tls.channel import TlsChannel
from runners.runner import Observation, RunContext
from runners.scripting.playwright.chromium import require_browser
from runners.scripting.playwright.evidence import build_browser_evidence, build_observation
from runners.scripting.playwright.run import run_script
from runners.tools import Tools, resolve_allowed

HTTPS_PORT: Final = 443
_LOOK_S: Final = 5.0
"""How long a host may take to show its certificate."""


class BrowserRunner:
    """Runs scripts that drive a browser."""

    spec = BrowserSpec

    async def observe(self, spec: BrowserSpec, ctx: RunContext) -> Observation:
        """Run the script once, in a fresh browser; look at the watched certificate meanwhile.

        Raises:
            CheckFailed: of kind SCRIPT, when the check cannot be run as it is written.
        """
        looking = asyncio.create_task(_look(spec.ssl_check_domain, ctx), name="certificate")
        try:
            run = await run_script(spec, ctx, browser=require_browser(ctx.network.scripts()))
            tls, notes = await looking
        finally:
            if looking.cancel():
                await asyncio.wait((looking,))
        evidence = build_browser_evidence(
            run.events, runtime_id=run.runtime_id, start_ms=run.start_ms
        )
        watched = msgspec.structs.replace(
            evidence, ssl_check_domain=spec.ssl_check_domain, tls=tls, snapshots=run.snapshots
        )
        seen = build_observation(run, watched)
        return msgspec.structs.replace(seen, log=(*notes, *seen.log))


async def _look(
    hostname: str | None, ctx: RunContext
) -> tuple[TlsFacts | None, tuple[LogLine, ...]]:
    """The host's certificate, valid or not; without one a line that says why.

    Whatever is wrong with it is not the script's fault.
    """
    if hostname is None:
        return None, ()
    await ctx.network.tls.load()
    limit = ctx.network.deadlines.within(min(_LOOK_S, ctx.timeout_s))
    try:
        with limit:
            return await _read_certificate(hostname, ctx.network), ()
    except CheckFailed as failed:
        why = failed.failure.message
    except TimeoutError:
        if not limit.expired:
            raise
        why = f"It did not come within {_LOOK_S:g} s."
    message = f"The certificate of {hostname} was not seen. {why}"
    return None, (LogLine(after_ms=0, level="WARN", message=message),)


async def _read_certificate(hostname: str, network: Tools) -> TlsFacts | None:
    address, *_ = await resolve_allowed(hostname, IpFamily.IPV4, network)
    wait = network.readiness.writable
    with await connect(address, HTTPS_PORT, IpFamily.IPV4, wait=wait) as sock:
        channel = TlsChannel(
            sock,
            network.tls,
            hostname=ascii_host(hostname).rstrip("."),
            peer=(address, HTTPS_PORT),
        )
        try:
            await channel.handshake()
        except CheckFailed:
            facts = channel.facts()
            if facts is None or not facts.chain:
                raise
        else:
            channel.send_close()
        return channel.facts()
