"""`python -m tests.soak`: three agents, a service, and mischief for as long as you like.

With `--store postgresql` there are two services on one PostgreSQL, which meets faults as well.
"""

import argparse
import asyncio
import secrets
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Final

from tests.faults.scene import set_scene
from tests.servers.dns import dns_server
from tests.servers.postgresql import LocalPostgres, require_programs
from tests.servers.tcp import echoes, tcp_server
from tests.soak.alerting.channels import QUICK, alerting_of
from tests.soak.books import Outcome
from tests.soak.secrecy import secrecy_of
from tests.soak.soak import Soak

_LEASE_S: Final = 3.0
_QUICK: Final = {"QUICK_QUEUE_S": "60", "QUICK_DELIVERIES": "3", **QUICK}


def main() -> int:
    """0: nothing was lost, doubled or leaked, and alerts are as they should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    chosen = parser.parse_args()
    print(f"seed={chosen.seed} minutes={chosen.minutes:g} store={chosen.store}", flush=True)  # noqa: T201 - what a person watches
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, ExitStack() as stack:
        server = url = None
        if chosen.store == "postgresql":
            data = stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-postgresql-"))
            server = LocalPostgres(require_programs(), Path(data))
            url = stack.enter_context(stack.enter_context(server.running()).database())
        for_s = chosen.minutes * 60
        outcome = asyncio.run(
            soaked(Path(folder), seed=chosen.seed, for_s=for_s, server=server, url=url)
        )
    for line in (outcome.ledger.line(), outcome.line()):
        print(line)  # noqa: T201 - the answer
    return 0 if outcome.is_clean else 1


async def soaked(
    folder: Path, *, seed: int, for_s: float, server: LocalPostgres | None, url: str | None
) -> Outcome:
    """Set the scene and its targets, and soak."""
    async with AsyncExitStack() as stack:
        tcp_port = await stack.enter_async_context(tcp_server(echoes))
        dns = await stack.enter_async_context(dns_server({("shop.test.", "A"): ["10.0.0.1"]}))
        scene = await stack.enter_async_context(
            set_scene(folder, lease_s=_LEASE_S, postgresql_url=url, **_QUICK)
        )
        secrecy = await stack.enter_async_context(secrecy_of(scene, seed=seed))
        alerting = await stack.enter_async_context(alerting_of(scene, seed=seed))
        soak = Soak(
            *(scene, secrecy, alerting),
            tcp_port=tcp_port,
            dns_port=dns.port,
            seed=seed,
            server=server,
        )
        return await soak.run(for_s=for_s)


if __name__ == "__main__":
    sys.exit(main())
