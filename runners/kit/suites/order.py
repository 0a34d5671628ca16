"""One run's wish for packages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from contract.scripted import PlaywrightSpec
from runners.kit.suites.installation import Installation, installation, key_of
from runners.kit.suites.log import SuiteLog
from runners.kit.suites.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a run brings, when its packages are installed or borrowed."""

    project: Project
    spec: PlaywrightSpec
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    """The check's own: what was installed with them is kept for these alone, as they may say where
    packages come from and what runs beside."""
    until_s: float
    """When all installations must have ended, by the log's clock."""
    limit_s: float
    """Which limit that comes of: that of installations, or of the whole run."""
    log: SuiteLog

    def wanted(self) -> Installation:
        """How to fulfil it; it blocks.

        Raises:
            UnknownManagerError: nobody here can.
        """
        project = self.project
        return installation(project.root, project.working_dir, self.spec.install_command)

    def key(self, wanted: Installation) -> str:
        """What the packages are kept under; it blocks."""
        told = json.dumps([dict(self.variables), self.spec.cache_hash], sort_keys=True)
        engine = f"node-{self.project.runtime.node_version} {told}"
        return key_of(wanted, self.project.root, self.project.working_dir, engine)
