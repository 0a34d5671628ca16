"""Which agent this is."""

import platform


def platform_name() -> str:
    """As in linux-x86_64."""
    return f"{platform.system().lower()}-{platform.machine()}"


def runtimes() -> dict[str, str]:
    """What runs the checks, by name and version."""
    return {"python": platform.python_version()}
