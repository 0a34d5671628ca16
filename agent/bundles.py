"""Brings the code of suites from the service, and says where an agent keeps what suites need."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.errors import ServiceAwayError, ServiceError, StoreError
from agent.data_folder import unusable
from runners.scripting.suites.bundle_cache import MAX_BUNDLE_BYTES, BundleCache, BundleError
from runners.scripting.suites.resources import SuiteOptions
from sandbox.spawn import can_have_own_users
from sandbox.users import find_impassable_parent
from sandbox.workspace import temporary_folder

RETRY_WAITS_S: Final = (1.0, 5.0)
"""Between tries; there is one more try than there are waits."""

log = structlog.get_logger(__name__)


class ServiceBundles:
    """Downloads, and tries again when the service is away for a moment."""

    def __init__(
        self, client: ServiceClient, *, waits_s: tuple[float, ...] = RETRY_WAITS_S
    ) -> None:
        self._client = client
        self._waits_s = waits_s

    async def download(self, sha256: str, target: Path) -> None:
        """Write the bundle into this file.

        Raises:
            BundleError: it cannot be had now.
            OSError: the disk refuses it.
        """
        takes_links = True
        for wait_s in (*self._waits_s, None):
            try:
                await self._fetch(sha256, target, takes_links=takes_links)
            except StoreError as problem:
                takes_links = False
                if wait_s is None:
                    raise BundleError(str(problem)) from problem
                log.info("bundle.not_direct", because=str(problem))
            except ServiceAwayError as problem:
                if wait_s is None:
                    raise BundleError(str(problem)) from problem
                log.warning("bundle.not_fetched", because=str(problem), wait_s=wait_s)
                await asyncio.sleep(wait_s)
            except ServiceError as problem:
                raise BundleError(str(problem)) from problem
            else:
                return

    async def _fetch(self, sha256: str, target: Path, *, takes_links: bool) -> None:
        with await asyncio.to_thread(target.open, "wb") as file:

            def take(part: bytes) -> None:
                file.write(part)
                if file.tell() > MAX_BUNDLE_BYTES:
                    raise BundleError(f"The bundle has more than {MAX_BUNDLE_BYTES} bytes.")

            await self._client.get_bundle(sha256, take, takes_links=takes_links)


@contextmanager
def open_suite_places(
    client: ServiceClient, data_dir: Path, proxies: Mapping[str, str]
) -> Iterator[SuiteOptions]:
    """Where an agent keeps bundles and packages, for as long as the block lasts.

    `proxies`: the variables by which package managers learn of them.

    Raises:
        OSError: nothing can be kept anywhere.
    """
    with _usable_folder(data_dir) as folder:
        yield SuiteOptions(
            bundles=BundleCache(ServiceBundles(client).download, folder / "bundles"),
            packages=folder / "packages",
            environment=proxies,
        )


@contextmanager
def _usable_folder(data_dir: Path) -> Iterator[Path]:
    """The data folder, or a temporary one where nothing can be written or scripts cannot read."""
    try:
        (data_dir / "packages").mkdir(mode=0o755, parents=True, exist_ok=True)
        _require_access(data_dir / "packages")
    except OSError as problem:
        log.warning("suites.temporary", because=unusable(problem))
    else:
        yield data_dir
        return
    with temporary_folder() as folder:
        folder.chmod(0o755)  # packages are read by the users that suites run as
        yield folder


def _require_access(packages: Path) -> None:
    """Suites whose users cannot get to their packages would fail, and not by their own fault."""
    above = find_impassable_parent(packages / "one") if can_have_own_users() else None
    if above is not None:
        raise PermissionError(
            f"The users that scripts run as cannot enter {above}, so packages are not kept there;"
            f" chmod o+x {above}, or choose another AGENT_DATA_DIR"
        )
