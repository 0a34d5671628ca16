"""What holds for every run of Playwright at this location, of a script or of a suite."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from runners.kit.harness import Harness
from runners.kit.scripts.runtimes import MissingRuntimeError

BROWSER_ARGUMENTS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-component-update",
    "--disable-sync",
)
_NAME: Final = re.compile(r"[^=\0]+")
_RESERVED: Final = re.compile(
    r"(NODE|LD|PW|PWTEST|PLAYWRIGHT|PICKET)_.*|PATH|HOME|TMPDIR|TMP|TEMP|SHELL|CI|SERVICE"
)
"""Names of the environment that lead Node, Playwright or us; a variable of a check cannot."""


def required_browser(harness: Harness) -> Path:
    """Chromium's program.

    Raises:
        MissingRuntimeError: there is none.
    """
    if harness.runtimes.browser is None:
        raise MissingRuntimeError("There is no Chromium on this machine.")
    return harness.runtimes.browser


def harmless_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that do not lead Node, Playwright or us."""
    return {
        name: value
        for name, value in variables.items()
        if _NAME.fullmatch(name) and not _RESERVED.fullmatch(name) and "\0" not in value
    }
