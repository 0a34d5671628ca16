"""The composition of compose.postgresql.yaml as processes of this machine: `make replicas`.

PostgreSQL, two services that share it, an agent of each, a demo target and the starter checks, on
free ports and in a folder that is gone afterwards. It shows results until Ctrl-C, or until there
are so many.
"""  # noqa: INP001 - a script beside the images

import argparse
import asyncio
import re
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp
from rich.console import Console

from picket.api_client import ApiUnreachableError, PublicApi
from picket.errors import CommandError
from picket.up.addresses import free_ports
from picket.up.agent_types import AgentTypes, set_up_checks
from picket.up.dashboard import Dashboard, NewResult, ResultPoller
from picket.up.dashboard_view import open_display, summary, verdict
from picket.up.demo_target import HOST, DemoPorts, demo_target, ping_forever
from picket.up.processes import Child, ChildDiedError, Program
from picket.up.starter_checks import PING_TOKEN, starter_checks
from service.vault.master_keys import new_key
from tests.servers.postgresql import LocalPostgres, require_programs

SERVICES: Final = 2
_START_LIMIT_S: Final = 180.0
_PAUSE_S: Final = 0.2
_STOP_LIMIT_S: Final = 6.0
_STORED: Final = re.compile(r"^picket_service_results_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Composition:
    """What runs."""

    services: dict[str, Child]
    """By their addresses."""
    agents: tuple[Child, ...]
    api: PublicApi
    """A client of the first service."""
    ping_url: str
    """Where the demo's nightly job reports: a service, so that any agent judges it."""


@asynccontextmanager
async def composed(folder: Path, database_url: str) -> AsyncIterator[Composition]:
    """Start all of it, in the order in which it depends on each other; stopped in reverse."""
    (folder / "no-runtimes").mkdir()
    async with AsyncExitStack() as stack:
        keys = _make_secrets(folder, database_url)
        target = await stack.enter_async_context(demo_target(folder, DemoPorts()))
        ports = free_ports(SERVICES * 3)
        urls = [f"http://{HOST}:{port}" for port in ports[:SERVICES]]
        services, agents = {}, []
        for number, url in enumerate(urls):
            program = _service(folder, number, ports[number])
            services[url] = await _start(stack, program)
        api = await stack.enter_async_context(PublicApi(urls[0], keys["api-key"]))
        for url, child in services.items():
            await _answers(url, child)
        for number, url in enumerate(urls):
            health, ping = ports[SERVICES + 2 * number :][:2]
            agents.append(
                await _start(
                    stack,
                    _agent(folder, number, url, (health, ping), target.certificate.authority),
                )
            )
        (location,) = await api.locations()
        types = AgentTypes(api, others=frozenset())
        await _until_known(types, agents[0])
        wanted = starter_checks(target.ports, location=location["slugName"])
        await set_up_checks(api, wanted, types)
        yield Composition(services, tuple(agents), api, f"{urls[1]}/ping/{PING_TOKEN}")


def _make_secrets(folder: Path, database_url: str) -> dict[str, str]:
    """One file each, as the containers have them; what is in them."""
    made = {
        "database-url": database_url,
        "key-pepper": secrets.token_urlsafe(32),
        "master-key": new_key(),
        "api-key": f"cu_{secrets.token_urlsafe(32)}",
        "location": f"pl_{secrets.token_urlsafe(32)}",
    }
    for name, value in made.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(value, encoding="utf-8")
    return made


def _service(folder: Path, number: int, port: int) -> Program:
    return Program(
        module="service",
        log=folder / f"service-{number}.log",
        settings={
            "SERVICE_HOST": HOST,
            "SERVICE_PORT": str(port),
            "SERVICE_DATA_DIR": str(folder / f"service-{number}"),
            "TRACE_VIEWER_PORT": "off",
            "RESULT_LISTS_PER_MINUTE": "600",
            "DATABASE_URL_FILE": str(folder / "database-url"),
            "KEY_PEPPER_FILE": str(folder / "key-pepper"),
            "SERVICE_MASTER_KEY_FILE": str(folder / "master-key"),
            "FIRST_API_KEY_FILE": str(folder / "api-key"),
            "FIRST_LOCATION_KEY_FILE": str(folder / "location"),
        },
    )


def _agent(folder: Path, number: int, url: str, ports: tuple[int, int], authority: Path) -> Program:
    """A light agent, as the composition has it: without runtimes for scripts."""
    health, ping = ports
    return Program(
        module="agent",
        log=folder / f"agent-{number}.log",
        settings={
            "API_KEY_FILE": str(folder / "location"),
            "SERVICE_URL": url,
            "AGENT_DATA_DIR": str(folder / f"agent-{number}"),
            "AGENT_HEALTH_HOST": HOST,
            "AGENT_HEALTH_PORT": str(health),
            "HEARTBEAT_HOST": HOST,
            "HEARTBEAT_PORT": str(ping),
            "EXTRA_CA_CERTS": str(authority),
            "PICKET_RUNTIMES": str(folder / "no-runtimes"),
            "UPTIME_CONCURRENCY": "32",
            "SHUTDOWN_GRACE_S": "4",
        },
    )


async def _start(stack: AsyncExitStack, program: Program) -> Child:
    child = await Child.start(program)
    stack.push_async_callback(child.stop, limit_s=_STOP_LIMIT_S)
    return child


async def _answers(url: str, child: Child) -> None:
    """Wait until the service is ready."""
    async with asyncio.timeout(_START_LIMIT_S), aiohttp.ClientSession() as http:
        while child.exit_code is None:
            with suppress(aiohttp.ClientError):
                async with http.get(f"{url}/-/readiness") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(_PAUSE_S)
    raise ChildDiedError(child)


async def _until_known(types: AgentTypes, agent: Child) -> None:
    """Wait until an agent has said which types it can run."""
    async with asyncio.timeout(_START_LIMIT_S):
        while agent.exit_code is None:
            with suppress(ApiUnreachableError):
                if await types.look() and types.is_known:
                    return
            await asyncio.sleep(_PAUSE_S)
    raise ChildDiedError(agent)


async def run(folder: Path, database_url: str, *, until_results: int | None) -> None:
    """Show results until a signal, or until there are enough.

    Raises:
        CommandError: a part ended by itself.
    """
    console, dashboard, over = Console(), Dashboard(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    began_at = datetime.now(UTC)
    async with composed(folder, database_url) as made:
        console.out(f"database {database_url}", highlight=False)
        for url in made.services:
            console.out(f"service  {url}", highlight=False)
        console.out(f"pages    {await made.api.sign_in_link()}", highlight=False)
        title = f"{' and '.join(made.services)} · Ctrl-C stops it"
        with open_display(console, dashboard, title=title) as display:

            def take(results: list[NewResult]) -> None:
                display.show(results)
                if until_results is not None and dashboard.counts.total() >= until_results:
                    over.set()

            poller = ResultPoller(made.api, dashboard, take, since=began_at)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(poller.follow(), name="results"),
                    group.create_task(display.keep_fresh(), name="display"),
                    group.create_task(ping_forever(made.ping_url), name="nightly job"),
                    *(
                        group.create_task(_watch(child), name=child.name)
                        for child in (*made.services.values(), *made.agents)
                    ),
                ]
                await over.wait()
                for task in tasks:
                    task.cancel()
        stored = [f"{url} stored {await _stored(url)}" for url in made.services]
        console.out("stopping…", highlight=False)
    console.print(summary(dashboard, width=console.width))
    console.out(f"{verdict(dashboard)}; {', '.join(stored)}", highlight=False)


async def _watch(child: Child) -> None:
    await child.wait()
    raise ChildDiedError(child)


async def _stored(url: str) -> int:
    """How many results came in by this service, by its own metrics."""
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics") as answer:
        return round(sum(map(float, _STORED.findall(await answer.text()))))


def main() -> int:
    """Start PostgreSQL, and run."""
    parser = argparse.ArgumentParser(prog="make replicas", description=__doc__)
    parser.add_argument("--until-results", type=int, help="end after so many results")
    chosen = parser.parse_args()
    code = 0
    with (
        tempfile.TemporaryDirectory(prefix="picket-replicas-") as folder,
        # PostgreSQL refuses to run as root, and its own user may not enter the folder of the keys.
        tempfile.TemporaryDirectory(prefix="picket-postgresql-") as data,
        LocalPostgres(require_programs(), Path(data)).running() as server,
        server.database() as url,
    ):
        try:
            asyncio.run(run(Path(folder), url, until_results=chosen.until_results))
        except* CommandError as problems:
            sys.stderr.write("\n".join(str(one) for one in problems.exceptions) + "\n")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
