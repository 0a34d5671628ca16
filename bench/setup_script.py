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
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contract.checks import ApiSpec, HttpRequest
from runners.api import ApiRunner
from runners.kit.egress import EgressRules
from runners.kit.harness import Harness, open_harness
from runners.kit.network import open_network
from runners.kit.resolve import SystemResolver
from runners.kit.runner import RunContext
from runners.kit.runtimes import find_runtimes
from runners.kit.script_spares import EACH

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
    async with open_network(EgressRules(), resolver=SystemResolver(), harness=harness) as network:
        ctx = RunContext(network=network, pings=_NoPings(), timeout_s=60)
        specs = [ApiSpec(request=request, setup_script=script) for script in scripts]
        yield [lambda spec=spec: _look(spec, ctx) for spec in specs]  # type: ignore[misc]
    server.close()


async def _look(spec: ApiSpec, ctx: RunContext) -> None:
    seen = await ApiRunner().observe(spec, ctx)
    if seen.failure is not None:
        raise RuntimeError(seen.failure.message)


async def _times_ms(look: Look, *, looks: int, between: Look) -> list[float]:
    took = []
    for _ in range(looks):
        await between()
        began = time.perf_counter()
        await look()
        took.append((time.perf_counter() - began) * 1000)
    return took


async def added_ms(*, spares: int, looks: int) -> tuple[float, float]:
    """What the script adds at the median, and at the fastest, with so many processes waiting."""
    async with (
        open_harness(find_runtimes(), spares=spares) as harness,
        _looks(harness, None, _SCRIPT) as (plain, scripted),
    ):
        if harness is None:
            raise RuntimeError("There is no runtime here; `make test` installs them.")

        async def all_wait() -> None:
            await asyncio.sleep(_PAUSE_S)
            for _ in range(_PATIENCE):
                if harness.spares.waiting == spares:
                    break
                await asyncio.sleep(_PAUSE_S)
            await asyncio.sleep(_PAUSE_S)  # the last one loads its code

        await scripted()
        with_script = await _times_ms(scripted, looks=looks, between=all_wait)
        without = await _times_ms(plain, looks=looks, between=all_wait)
    median, fastest = statistics.median, min
    return median(with_script) - median(without), fastest(with_script) - fastest(without)


async def main(looks: int) -> None:
    """Measure both and print the line."""
    cold, fastest_cold = await added_ms(spares=0, looks=looks)
    spare, fastest_spare = await added_ms(spares=EACH, looks=looks)
    print(f"fastest of {looks}: cold {fastest_cold:.1f} ms, spare {fastest_spare:.1f} ms")
    print(f"setup_cold_ms={cold:.1f} setup_spare_ms={spare:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=_LOOKS, help="how many of each kind")
    asyncio.run(main(parser.parse_args().looks))
