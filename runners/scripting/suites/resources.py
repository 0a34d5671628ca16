"""What check suites need in addition to a sandbox and a runtime; made once per process."""

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
    """Where bundles come from, and where packages are kept."""

    bundles: BundleSource
    packages: Path
    """The folder of installed packages, which all slot users can read."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that name proxies for installations."""
    is_short_lived: bool = False
    """Whether the process ends with its run, and the next one uses the packages again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """What all runs of suites share."""

    bundles: BundleSource
    dependencies: Dependencies
    packages: Path
    """The real path of the folder of kept packages."""


def open_suites(places: SuiteOptions, sandbox: Sandbox) -> Suites:
    """Open what suites need; it blocks while it sweeps what a killed process left.

    Raises:
        OSError: the disk refuses it.
    """
    # Without slot users, scripts run as the user that owns the kept packages.
    digests = None if can_have_own_users() else Digests(on_disk=places.is_short_lived)
    kept = PackageCache(places.packages, digests=digests)
    kept.sweep()
    installer = Installer(sandbox, environment=places.environment)
    return Suites(
        bundles=places.bundles,
        dependencies=Dependencies(installer, AsyncPackageCache(kept)),
        packages=places.packages.resolve(),
    )
