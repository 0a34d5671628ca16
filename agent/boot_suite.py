"""The suite of the boot check: one test in our Chromium, with the runtime's own Playwright.

It needs no registry: what is installed is a link to the packages that the runtime has. The
runtime's npm has to start: by its name alone, the host's would do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from contract.scripted import PlaywrightSpec
from runners.kit.harness import Harness
from runners.kit.isolation.workspace import temporary_folder
from runners.kit.suites.bundle_archive import pack
from runners.kit.suites.places import SuitePlaces, suites_of

_TEST: Final = """
const { test } = require('@playwright/test');

test('opens a page', async ({ page }) => {
  await page.goto('URL');
});
"""
_FILES: Final = {
    "package.json": '{"name": "boot", "private": true}',
    "package-lock.json": '{"name": "boot", "lockfileVersion": 3, "packages": {}}',
    "playwright.config.js": "module.exports = { workers: 1, retries: 0 };",
}


class _OneBundle:
    """Gives the boot check's bundle, whatever is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def fetch(self, sha256: str) -> Path:
        """The bundle."""
        del sha256
        return self._path


BOOT_SUITE: Final = PlaywrightSpec(
    bundle_sha256="0" * 64,
    install_command='bin="$(dirname "$(command -v node)")"; '
    '"$bin/npm" --version && ln -s "$bin/../node_modules" node_modules',
)
"""The check that runs the suite."""


@contextmanager
def with_boot_suite(harness: Harness, url: str) -> Iterator[Harness]:
    """A harness whose only bundle is the boot check's, which opens this page; it blocks shortly.

    Raises:
        OSError: the disk refuses it.
    """
    with temporary_folder() as place:
        suite, bundle = place / "suite", place / "suite.tar.gz"
        suite.mkdir()
        for name, content in {**_FILES, "boot.spec.js": _TEST.replace("URL", url)}.items():
            (suite / name).write_text(content)
        pack(suite, bundle)
        places = SuitePlaces(bundles=_OneBundle(bundle), packages=place / "packages")
        yield replace(harness, suites=suites_of(places, harness.sandbox))
