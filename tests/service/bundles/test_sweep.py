from typing import Any

from service.bundles import actions
from service.bundles.model import BundleRow
from service.bundles.sweep import KEPT_MS, BundleSweep
from tests.builders.code_bundles import a_bundle, suite_body
from tests.fakes.clock import FakeClock
from tests.servers.public_api import ApiUser, PublicApi


async def swept(api: PublicApi, *, after_ms: int) -> int:
    """Sweep so long after now."""

    def sweep(connection: Any) -> int:
        clock = FakeClock(api.backend.clock.now_ms(connection) + after_ms)
        return BundleSweep(api.backend.bundles, clock).sweep(connection)

    return await api.database.write(sweep)


async def test_a_bundle_that_no_check_runs_goes_after_a_day(api: PublicApi, alice: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    assert await swept(api, after_ms=KEPT_MS - 60_000) == 0
    assert await swept(api, after_ms=KEPT_MS + 60_000) == 1
    assert (await alice.get(f"/v1/code-bundles/{sha256}")).status == 404
    assert not api.backend.bundles.path(alice.secrets.account_id, sha256).exists()
    assert await a_bundle(alice) == sha256


async def test_a_bundle_that_a_check_runs_stays(api: PublicApi, alice: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    await alice.post("/v1/checks/playwright", suite_body(sha256))
    assert await swept(api, after_ms=30 * KEPT_MS) == 0


async def test_a_bundle_that_was_sent_again_is_new(api: PublicApi, alice: ApiUser) -> None:
    sha256 = await a_bundle(alice)
    old = BundleRow(sha256=sha256, size_bytes=1, created_ms=0)
    await api.database.write(lambda c: actions.put(c, alice.secrets.account_id, old))
    await a_bundle(alice)
    assert await swept(api, after_ms=0) == 0
