"""Which agent this is."""

import platform

from runners.kit.scripts.runtimes import Runtimes


def platform_name() -> str:
    """As in linux-x86_64."""
    return f"{platform.system().lower()}-{platform.machine()}"


def runtimes(of_scripts: Runtimes | None = None) -> dict[str, str]:
    """What runs the checks, by name and version; a runtime of scripts by that of its Node."""
    found = {"python": platform.python_version()}
    if of_scripts is None:
        return found
    found |= {one.id: one.node_version for one in of_scripts.by_id.values()}
    if of_scripts.browser_version is not None:
        found["chromium"] = of_scripts.browser_version
    return found
