"""`python -m tests.soak`: three agents, one service, and mischief for as long as you like."""

import argparse
import asyncio
import secrets
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tests.faults.scene import set_scene
from tests.servers.dns import dns_server
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
    chosen = parser.parse_args()
    print(f"seed={chosen.seed} minutes={chosen.minutes:g}", flush=True)  # noqa: T201 - what a person watches
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        outcome = asyncio.run(soaked(Path(folder), seed=chosen.seed, for_s=chosen.minutes * 60))
    for line in (outcome.ledger.line(), outcome.line()):
        print(line)  # noqa: T201 - the answer
    return 0 if outcome.is_clean else 1


async def soaked(folder: Path, *, seed: int, for_s: float) -> Outcome:
    """Set the scene and its targets, and soak."""
    async with AsyncExitStack() as stack:
        tcp_port = await stack.enter_async_context(tcp_server(echoes))
        dns = await stack.enter_async_context(dns_server({("shop.test.", "A"): ["10.0.0.1"]}))
        scene = await stack.enter_async_context(set_scene(folder, lease_s=_LEASE_S, **_QUICK))
        secrecy = await stack.enter_async_context(secrecy_of(scene, seed=seed))
        alerting = await stack.enter_async_context(alerting_of(scene, seed=seed))
        soak = Soak(scene, secrecy, alerting, tcp_port=tcp_port, dns_port=dns.port, seed=seed)
        return await soak.run(for_s=for_s)


if __name__ == "__main__":
    sys.exit(main())
