"""Runtimes are told as they are, to everybody."""

from typing import Any

from contract.runtimes import RETIRED, RUNTIMES
from tests.servers.public_api import PublicApi


async def get(api: PublicApi, path: str) -> tuple[int, Any]:
    async with api.http.get(f"{api.url}/v1/runtimes{path}") as answer:
        return answer.status, await answer.json()


async def test_runtimes_are_listed_without_a_key_the_newest_first(api: PublicApi) -> None:
    status, shown = await get(api, "")
    assert status == 200
    assert [one["name"] for one in shown] == [*RUNTIMES, *RETIRED]
    assert [one["stage"] for one in shown] == ["CURRENT", "STABLE", *["REMOVED"] * len(RETIRED)]


async def test_a_runtime_tells_what_it_has(api: PublicApi) -> None:
    status, shown = await get(api, "/2025.04")
    assert status == 200
    assert shown == {
        "name": "2025.04",
        "multiStepSupport": True,
        "nodeJsVersion": "22.20.0",
        "stage": "STABLE",
        "runtimeEndOfLife": "2027-04-30",
        "description": shown["description"],
        "dependencies": dict(RUNTIMES["2025.04"].libraries),
    }
    assert "Playwright 1.51.1" in shown["description"]


async def test_a_runtime_that_no_agent_has_is_not_there(api: PublicApi) -> None:
    status, shown = await get(api, "/2023.02")
    assert (status, shown["stage"]) == (200, "REMOVED")
    assert shown["description"].startswith("Retired: no agent has it.")
    status, shown = await get(api, "/1999.01")
    assert status == 404
    assert shown["message"] == "There is no runtime of this name; there are 2026.04, 2025.04."
