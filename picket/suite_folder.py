"""The folder of a Playwright suite as the bundle that runners take."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from picket.errors import CommandError
from runners.kit.isolation.workspace import temporary_folder
from runners.kit.suites import bundle_archive
from runners.kit.suites.bundle import MAX_BUNDLE_BYTES, BundleError
from runners.kit.suites.places import SuitePlaces

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")


class SuiteTooLargeError(Exception):
    """The folder is more than a bundle may hold; the text says how much."""


@dataclass(frozen=True, slots=True)
class PackedSuite:
    """A bundle of this machine; gives itself to runners."""

    path: Path
    sha256: str

    async def fetch(self, sha256: str) -> Path:
        """The tar.gz.

        Raises:
            BundleError: another one is wanted.
        """
        if sha256 != self.sha256:
            raise BundleError(f"There is no bundle {sha256} here.")
        return self.path


@contextmanager
def packed(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[SuitePlaces, str]]:
    """What a run of the folder's suite needs, for as long as the block lasts; and its hash.

    Raises:
        CommandError: the folder cannot be packed.
    """
    with temporary_folder() as place:
        place.chmod(0o755)  # packages are read by the users that suites run as
        try:
            suite = pack(folder, place / "suite.tar.gz")
        except SuiteTooLargeError as problem:
            raise CommandError(f"the suite {folder} has {problem}") from problem
        except OSError as problem:
            name = problem.filename or folder
            raise CommandError(f"{name} cannot be packed: {problem.strerror}") from problem
        proxies = proxies_in(environ)
        packages = place / "packages"
        yield SuitePlaces(bundles=suite, packages=packages, environment=proxies), suite.sha256


def proxies_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of the environment, in capitals or not, as package managers read them. Pure."""
    found = {name: environ.get(name) or environ.get(name.lower()) for name in _PROXIES}
    return {name: value for name, value in found.items() if value}


def pack(folder: Path, target: Path) -> PackedSuite:
    """Write the folder's files into a tar.gz, without what a run makes anew.

    Raises:
        SuiteTooLargeError: it is more than a bundle may hold.
        OSError: a file cannot be read, or the bundle not be written.
    """
    bundle_archive.pack(folder, target)
    size = target.stat().st_size
    if size > MAX_BUNDLE_BYTES:
        raise SuiteTooLargeError(f"{size} bytes when packed; use at most {MAX_BUNDLE_BYTES}")
    with target.open("rb") as file:
        return PackedSuite(target, hashlib.file_digest(file, hashlib.sha256).hexdigest())
