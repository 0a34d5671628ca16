"""The established service's own command line, as npm has it, locked here.

`python -m tests.clients.installation` puts it into `.tools/clients` with the npm of the runtimes.
npm checks each package against the lock file; what is complete already is left as it is.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from runners.installation.places import runtimes_folder
from runners.installation.progress import say

SOURCE: Final = Path(__file__).with_name("checkly")
FOLDER: Final = Path(__file__).parents[2] / ".tools/clients/checkly"
_FILES: Final = ("package.json", "package-lock.json")
_READY: Final = "ready"
_NODE: Final = "2026.04"
"""The runtime whose Node is new enough for the command line."""
_LIMIT_S: Final = 900


def node() -> Path:
    """Where the Node is that runs the command line."""
    return runtimes_folder() / _NODE / "bin/node"


def installed() -> Path:
    """The folder with `node_modules`; where there is none, the test is skipped, in CI red."""
    if not _is_current():
        reason = "the command line is not installed: run python -m tests.clients.installation"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return FOLDER


def install() -> None:
    """Install what the lock file says, unless it is there.

    Raises:
        OSError: no npm, or no right to write.
        subprocess.SubprocessError: npm failed, perhaps for want of a network.
    """
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with (FOLDER.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_current():
            return
        say("installing the established command line for tests")
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        for name in _FILES:
            shutil.copy(SOURCE / name, FOLDER)
        words = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        subprocess.run(
            [node().with_name("npm"), *words],
            cwd=FOLDER,
            env={**os.environ, "PATH": f"{node().parent}:/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            timeout=_LIMIT_S,
            check=True,
        )
        (FOLDER / _READY).write_text(_fingerprint())


def _is_current() -> bool:
    ready = FOLDER / _READY
    return node().exists() and ready.exists() and ready.read_text() == _fingerprint()


def _fingerprint() -> str:
    return sha256(b"".join((SOURCE / name).read_bytes() for name in _FILES)).hexdigest()


if __name__ == "__main__":
    try:
        install()
    except (OSError, subprocess.SubprocessError) as problem:
        say(f"the established command line is not installed: {problem}")
        sys.exit(1)
