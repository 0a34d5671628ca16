"""How long a setup script adds to an API check: in a process from nothing, and in one that waits.

Ends with `setup_cold_ms=… setup_spare_ms=…`: the median of a check whose script sets a header, less
the median of the same check without, one after the other, at one server on loopback.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contract.checks import ApiSpec
from contract.requests import HttpRequest
from runners.api import ApiRunner
from runners.net.dns.resolve import SystemResolver
from runners.net.egress.rules import EgressRules
from runners.runner import RunContext
from runners.scripting.harness import Harness, open_harness
from runners.scripting.node.node_pool import NODES_PER_RUNTIME
from runners.scripting.node.runtimes import find_runtimes
from runners.tools import open_tools

_SCRIPT: Final = "request.headers['x-run'] = 'tea';"
_PAGE: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
_LOOKS: Final = 40
_PAUSE_S: Final = 0.05
_PATIENCE: Final = 200

Look = Callable[[], Awaitable[None]]


class _NoPings:
    """No check here asks for one."""

    def silent_for_s(self, token: str) -> float | None:  # noqa: ARG002 - the protocol has it
        return None


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(EOFError, OSError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(_PAGE)
    writer.close()


@contextlib.asynccontextmanager
async def _looks(harness: Harness | None, *scripts: str | None) -> AsyncIterator[list[Look]]:
    """A look with each of the scripts, all at one server."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    request = HttpRequest(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    async with open_tools(EgressRules(), resolver=SystemResolver(), harness=harness) as network:
        ctx = RunContext(network=network, pings=_NoPings(), timeout_s=60)
        specs = [ApiSpec(request=request, setup_script=script) for script in scripts]
        yield [lambda spec=spec: _look(spec, ctx) for spec in specs]  # type: ignore[misc]
    server.close()


async def _look(spec: ApiSpec, ctx: RunContext) -> None:
    seen = await ApiRunner().observe(spec, ctx)
    if seen.failure is not None:
        raise RuntimeError(seen.failure.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What a script adds to a check, and what a bare Node takes in the same moments."""

    median_ms: float
    fastest_ms: float
    bare_ms: float
    """Median of `node --permission` with an empty program, from start to end."""


async def _bare(node: Path) -> None:
    process = await asyncio.create_subprocess_exec(node, "--permission", "--eval", "0")
    if await process.wait() != 0:
        raise RuntimeError("Node does not start.")


async def _took_ms(look: Look) -> float:
    began = time.perf_counter()
    await look()
    return (time.perf_counter() - began) * 1000


async def _all_wait(harness: Harness, spares: int) -> None:
    """Until as many processes wait as are kept."""
    await asyncio.sleep(_PAUSE_S)
    for _ in range(_PATIENCE):
        if harness.node_pool.waiting == spares:
            break
        await asyncio.sleep(_PAUSE_S)
    await asyncio.sleep(_PAUSE_S)  # the last one loads its code


async def added_ms(*, spares: int, looks: int) -> Added:
    """What the script adds with so many processes waiting; all kinds of looks take turns."""
    runtimes = find_runtimes()
    async with (
        open_harness(runtimes, spares=spares) as harness,
        _looks(harness, None, _SCRIPT) as (plain, scripted),
    ):
        if harness is None:
            raise RuntimeError("There is no runtime here; `make test` installs them.")
        bare = partial(_bare, runtimes.get(None).node)
        await scripted()
        times_ms: list[list[float]] = [[], [], []]
        for _ in range(looks):
            for took_ms, look in zip(times_ms, (scripted, plain, bare), strict=True):
                await _all_wait(harness, spares)
                took_ms.append(await _took_ms(look))
    with_script, without, alone = times_ms
    return Added(
        median_ms=statistics.median(with_script) - statistics.median(without),
        fastest_ms=min(with_script) - min(without),
        bare_ms=statistics.median(alone),
    )


async def measure(looks: int) -> dict[str, float]:
    """Both kinds of starts, printed; the medians by name."""
    found = {}
    for name, spares in (("cold", 0), ("spare", NODES_PER_RUNTIME)):
        added = await added_ms(spares=spares, looks=looks)
        print(
            f"setup script, {name:5} adds {added.median_ms:5.1f} ms, {added.fastest_ms:.1f} at the "
            f"fastest; a bare node --permission takes {added.bare_ms:.1f} ms",
            flush=True,
        )
        found[f"setup_{name}_ms"] = added.median_ms
    return found


async def main(looks: int) -> None:
    """Measure both and print the line."""
    found = await measure(looks)
    print(" ".join(f"{name}={value:.1f}" for name, value in found.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=_LOOKS, help="how many of each kind")
    asyncio.run(main(parser.parse_args().looks))
