from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
import structlog

from agent import bundles
from agent.api_client.client import ServiceClient
from agent.api_client.errors import RequestRefusedError
from agent.bundles import ServiceBundles, open_suite_places
from runners.scripting.suites.bundle_cache import BundleError
from sandbox.users import find_impassable_parent
from tests.builders.agents import a_client
from tests.builders.code_bundles import bundle_bytes, sha256_of, suite_body
from tests.servers.service import RunningService, serve_service
from tests.servers.tcp import refusing_port

BODY = bundle_bytes(Random(1).randbytes(3_000_000))
SHA = sha256_of(BODY)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """A service with a suite at the first location."""
    async with serve_service(tmp_path / "service") as running:
        suite = tmp_path / "suite.tar.gz"
        suite.write_bytes(BODY)
        with suite.open("rb") as file:
            sent = await running.alice.put(f"/v1/code-bundles/{SHA}", data=file)
        assert sent.status == 201, sent.body
        made = await running.alice.post("/v1/checks/playwright", suite_body(SHA))
        assert made.status == 201, made.body
        yield running


@pytest.fixture
async def client(service: RunningService) -> AsyncIterator[ServiceClient]:
    async with a_client(service.url, api_key=service.secrets.location_key) as made:
        yield made


async def test_an_agent_fetches_the_bundle_of_a_suite_with_its_key(
    client: ServiceClient, tmp_path: Path
) -> None:
    await ServiceBundles(client).download(SHA, tmp_path / "bundle")
    assert (tmp_path / "bundle").read_bytes() == BODY


async def test_a_bundle_is_kept_under_the_data_folder(
    client: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "find_impassable_parent", lambda _folder: None)
    with open_suite_places(client, tmp_path / "data", {"NO_PROXY": "*"}) as places:
        assert await places.bundles.fetch(SHA) == tmp_path / "data" / "bundles" / SHA
        assert places.packages == tmp_path / "data" / "packages"
        assert places.environment == {"NO_PROXY": "*"}


async def test_without_a_data_folder_bundles_lie_where_they_are_gone_afterwards(
    client: ServiceClient, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with open_suite_places(client, tmp_path / "file" / "data", {}) as places:
        kept = await places.bundles.fetch(SHA)
        assert kept.is_file()
    assert not kept.exists()


async def test_packages_lie_where_the_users_that_scripts_run_as_get_to(
    client: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_impassable_parent(tmp_path) is not None
    monkeypatch.setattr(bundles, "can_have_own_users", lambda: True)
    with (
        structlog.testing.capture_logs() as said,
        open_suite_places(client, tmp_path, {}) as places,
    ):
        assert find_impassable_parent(places.packages) is None
        assert not places.packages.is_relative_to(tmp_path)
    (line,) = said
    assert "chmod o+x" in line["because"]
    monkeypatch.setattr(bundles, "can_have_own_users", lambda: False)
    with open_suite_places(client, tmp_path, {}) as places:
        assert places.packages == tmp_path / "packages"


async def test_a_bundle_that_no_check_runs_is_refused_and_the_service_is_not_away(
    client: ServiceClient,
) -> None:
    with pytest.raises(RequestRefusedError, match="No check of this location runs a bundle"):
        await client.get_bundle("0" * 64, lambda _part: None)


async def test_a_service_that_is_away_is_no_fault_of_the_suite(tmp_path: Path) -> None:
    with refusing_port() as port:
        async with a_client(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(BundleError, match="cannot be reached"):
                await ServiceBundles(client).download(SHA, tmp_path / "bundle")
