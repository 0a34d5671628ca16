"""What check suites need beside a sandbox and a runtime; made once per process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runners.kit.isolation.process_limits import can_have_own_users
from runners.kit.isolation.sandbox import Sandbox
from runners.kit.suites.bundle import Bundles
from runners.kit.suites.dependencies import Dependencies
from runners.kit.suites.installing import Installer
from runners.kit.suites.lending import Lending
from runners.kit.suites.node_modules import NodeModules
from runners.kit.suites.seals import Seals


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlaces:
    """Where bundles come from and packages are kept."""

    bundles: Bundles
    packages: Path
    """Installed packages lie here; read by the users of all slots."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Proxies that installations go through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """Shared by all runs of suites."""

    bundles: Bundles
    dependencies: Dependencies
    packages: Path
    """Where kept ones are, past all links."""


def suites_of(places: SuitePlaces, sandbox: Sandbox) -> Suites:
    """Take the places into use; it blocks while it clears up after a process that was killed.

    Raises:
        OSError: the disk refuses it.
    """
    # Where scripts have no users of their own, they run as the one who keeps the packages.
    kept = NodeModules(places.packages, seals=None if can_have_own_users() else Seals())
    kept.sweep()
    installer = Installer(sandbox, environment=places.environment)
    return Suites(
        bundles=places.bundles,
        dependencies=Dependencies(installer, Lending(kept)),
        packages=places.packages.resolve(),
    )
