"""What check suites need beside a sandbox and a runtime; made once per process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runners.scripting.suites.bundle_cache import BundleSource
from runners.scripting.suites.install import Dependencies, Installer
from runners.scripting.suites.package_cache import AsyncPackageCache, Digests, PackageCache
from sandbox.sandbox import Sandbox
from sandbox.spawn import can_have_own_users


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions:
    """Where bundles come from and packages are kept."""

    bundles: BundleSource
    packages: Path
    """Installed packages lie here; read by the users of all slots."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Proxies that installations go through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """Shared by all runs of suites."""

    bundles: BundleSource
    dependencies: Dependencies
    packages: Path
    """Where kept ones are, past all links."""


def open_suites(places: SuiteOptions, sandbox: Sandbox) -> Suites:
    """Take the places into use; it blocks while it clears up after a process that was killed.

    Raises:
        OSError: the disk refuses it.
    """
    # Where scripts have no users of their own, they run as the one who keeps the packages.
    kept = PackageCache(places.packages, digests=None if can_have_own_users() else Digests())
    kept.sweep()
    installer = Installer(sandbox, environment=places.environment)
    return Suites(
        bundles=places.bundles,
        dependencies=Dependencies(installer, AsyncPackageCache(kept)),
        packages=places.packages.resolve(),
    )
