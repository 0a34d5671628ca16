"""`picket test` at a service: the checks run on an agent of a location, and are not stored."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from picket.__main__ import main
from picket.errors import ExitCode
from tests.builders.agent_process import AgentProcess
from tests.servers.service import RunningService, serve_service

SECRET = "correct-horse-battery"
GROUP = """
kind: group
id: shop
name: Shop
variables: { TENANT: north, TOKEN: "${SHOP_TOKEN}" }
apiCheckDefaults:
  url: "${SITE}"
  assertions: [{ source: STATUS_CODE, comparison: EQUALS, target: 200 }]
"""
CHECKS = """
type: API
name: Health
group: shop
request: { method: GET, url: "{{GROUP_BASE_URL}}/health?{{TENANT}}" }
---
type: API
name: Nothing there
group: shop
request: { method: GET, url: "{{GROUP_BASE_URL}}/{{TOKEN}}" }
---
type: URL
name: Health again
request: { url: "{{BASE}}/health" }
variables: { BASE: "http://127.0.0.1:9" }
---
type: HEARTBEAT
name: Backup
heartbeat: { period: 1, periodUnit: days, grace: 1, graceUnit: hours }
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A service with an agent, and a folder with checks."""

    service: RunningService
    folder: Path
    capsys: pytest.CaptureFixture[str]

    async def test(self, *options: str) -> tuple[int, str]:
        """The exit code, and both outputs."""
        self.capsys.readouterr()
        code = await asyncio.to_thread(main, ["test", str(self.folder), *options])
        said = self.capsys.readouterr()
        return code, said.out + said.err


@asynccontextmanager
async def an_agent(service: RunningService, folder: Path) -> AsyncIterator[None]:
    environ = {"API_KEY": service.secrets.location_key}
    async with AgentProcess(service.url, folder, environ):
        yield


@pytest.fixture
async def scene(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> AsyncIterator[Scene]:
    folder = tmp_path / "checks"
    folder.mkdir()
    (folder / "shop.yaml").write_text(CHECKS)
    (folder / "group.yaml").write_text(GROUP)
    async with serve_service(tmp_path) as service:
        monkeypatch.setenv("SERVICE_URL", service.url)
        monkeypatch.setenv("SITE", service.url)
        monkeypatch.setenv("API_KEY", service.secrets.api_key)
        monkeypatch.setenv("SHOP_TOKEN", SECRET)
        yield Scene(service, folder, capsys)


async def test_checks_run_on_the_agents_with_their_group_and_are_not_stored(
    scene: Scene, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    base = f"BASE={scene.service.url}"
    async with an_agent(scene.service, tmp_path / "agent"):
        code, said = await scene.test("--env", base, "--junit", str(report))
    assert code == ExitCode.FAILED
    assert "✔ PASSED  Health (shop.yaml:2)" in said
    assert "✔ PASSED  Health again (shop.yaml:12)" in said
    assert "✘ FAILED  Nothing there (shop.yaml:7)" in said
    assert "- SKIPPED  Backup (shop.yaml:17)" in said
    assert said.splitlines()[-1] == "2 of 3 passed, 1 skipped."
    assert (await scene.service.alice.get("/v1/checks")).body == []
    assert SECRET not in said + report.read_text()
    failure = ET.parse(report).getroot().find(".//failure")
    assert failure is not None
    assert "404" in str(failure.get("message"))


async def test_what_gets_no_result_is_an_error(scene: Scene) -> None:
    code, said = await scene.test("--patience", "1")
    assert code == ExitCode.FAILED
    place = scene.service.secrets.location_slug
    assert f"No agent is connected at the location {place} yet; waiting for one." in said
    assert f"No result came; is an agent running at the location {place}?" in said
    assert said.splitlines()[-1] == "0 of 3 passed, 1 skipped."


async def test_an_unknown_location_is_told_with_those_that_exist(scene: Scene) -> None:
    code, said = await scene.test("--location", "cellar")
    assert code == ExitCode.BAD_INPUT
    place = scene.service.secrets.location_slug
    assert said == f"picket: --location is cellar; the service has {place}\n"


async def test_one_of_several_locations_has_to_be_named(scene: Scene) -> None:
    body = {"name": "Cellar", "slugName": "cellar"}
    await scene.service.alice.post("/v1/private-locations", body)
    code, said = await scene.test()
    assert code == ExitCode.BAD_INPUT
    assert "name the location with --location; the service has cellar, default" in said


async def test_what_the_service_refuses_is_told_by_its_file(scene: Scene) -> None:
    (scene.folder / "page.yaml").write_text("type: AGENTIC\nname: A\n")
    code, said = await scene.test()
    assert code == ExitCode.FAILED
    assert 'picket: "page.yaml: $.prompt" is missing.\n' in said


async def test_a_refused_key_ends_the_command(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "cu_wrong")
    assert (await scene.test())[0] == ExitCode.KEY_REFUSED
