"""What is to be installed for a suite, and under which key its packages are kept. Pure but reading.

The key covers every file that an installation is given; it is done in a folder with these files
alone, so that nothing else of a suite can change what others with the same key get.
"""

import hashlib
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from runners.kit.suites.package_manager import (
    LOCK_FILES,
    MANIFEST,
    Manager,
    Tool,
    UnknownManagerError,
    has_local_packages,
    is_plain_install,
    lock_file,
    runs_own_scripts,
    tool_of,
)

_FORMAT: Final = "3"
"""Changes when the way of installing changes, so that older packages are not found any more."""
_CONFIGURATION: Final = (
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    "pnpm-workspace.yaml",
    "bunfig.toml",
)
_PNPMS: Final = "pnpm-workspace.yaml"
_OF_ITS_OWN: Final = re.compile(
    r"^(packages|patchedDependencies):|:\s*['\"]?(file|link|portal):", re.MULTILINE
)
"""In pnpm's settings: folders and files of the suite that are installed."""
_OTHER_FILES: Final = re.compile(
    r"^[^#;\n]*(cafile|certfile|keyfile|pnpmfile|ca_?filepath|cert_?filepath|key_?filepath)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Settings that name further files, whoever reads them."""
_FOLDERS: Final = (".yarn/releases", ".yarn/plugins", ".yarn/patches")
_START: Final = Path("/proc/sys/kernel/random/boot_id")
_LARGEST_BYTES: Final = 64 * 1024**2


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """One installation of a suite's dependencies."""

    folder: Path
    """Where the lock file is; node_modules comes here."""
    tool: Tool
    command: str | None
    """The suite's own command, for a shell. None: the tool's."""
    inputs: tuple[str, ...]
    """The files that it is given, relative to the folder."""
    in_place_because: str | None
    """Why its packages cannot be kept for other runs. None: they can."""

    def settings(self) -> tuple[str, ...]:
        """What the suite tells its package manager beside what to install; it blocks."""
        return tuple(_text(self.folder / name) for name in self.inputs if name in _CONFIGURATION)


def installation(root: Path, working_dir: Path, command: str) -> Installation:
    """How to install the suite in `root` of which `working_dir` is run; it blocks while it reads.

    Raises:
        UnknownManagerError: there is no lock file, or none that is known.
        OSError: the disk fails.
    """
    folder, lock_name = _lock_of(root, working_dir)
    manifest = _manifest(folder)
    lock_text = _text(folder / lock_name)
    tool = tool_of(lock_name, lock_text, manifest)
    if tool.manager is Manager.NPM:
        _decoded(lock_name, lock_text)
    own = command.strip() or None
    return Installation(
        folder=folder,
        tool=tool,
        command=own,
        inputs=tuple(_inputs(folder, lock_name)),
        in_place_because=_in_place_because(folder, manifest, own),
    )


def key_of(wanted: Installation, root: Path, working_dir: Path, engine: str) -> str:
    """The content address of what will be installed; it blocks while it reads."""
    where = (str(wanted.folder.relative_to(root)), str(working_dir.relative_to(root)))
    words = (_FORMAT, engine, _machine(), wanted.command or "", wanted.tool.package or "", *where)
    digest = hashlib.sha256("\0".join(words).encode())
    for name in wanted.inputs:
        with (wanted.folder / name).open("rb") as file:
            content = hashlib.file_digest(file, hashlib.sha256)
            digest.update(f"\0{name}\0{file.tell()}\0".encode())
        digest.update(content.digest())
    return digest.hexdigest()


def is_inside(path: Path, root: Path) -> bool:
    """Whether the path leads into the folder, also over links."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except RuntimeError:  # links in a circle lead nowhere
        return False


def _lock_of(root: Path, working_dir: Path) -> tuple[Path, str]:
    """The folder with the nearest lock file from the working directory upwards, and its name."""
    for folder in _upwards(root, working_dir):
        present = {name: "" for name in LOCK_FILES if (folder / name).is_file()}
        name = lock_file(present, _manifest(folder) if present else {})
        if name is not None:
            return folder, name
    raise UnknownManagerError(
        "The suite has no lock file (package-lock.json, pnpm-lock.yaml, yarn.lock or bun.lock); "
        "commit the one that your package manager writes: `npm install --package-lock-only`, "
        "`pnpm install`, `yarn install` or `bun install` make it."
    )


def _upwards(root: Path, folder: Path) -> Iterator[Path]:
    while folder != root:
        yield folder
        folder = folder.parent
    yield root


def _manifest(folder: Path) -> dict[str, Any]:
    if not (folder / MANIFEST).is_file():
        raise UnknownManagerError("There is no package.json beside the lock file.")
    return _decoded(MANIFEST, _text(folder / MANIFEST))


def _decoded(name: str, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as problem:
        raise UnknownManagerError(f"The suite's {name} is no JSON: {problem}.") from problem
    except RecursionError as problem:
        raise UnknownManagerError(f"The suite's {name} is nested too deeply.") from problem


def _text(path: Path) -> str:
    if path.stat().st_size > _LARGEST_BYTES:
        raise UnknownManagerError(f"The suite's {path.name} has more than {_LARGEST_BYTES} bytes.")
    return path.read_text(encoding="utf-8-sig", errors="replace")


def _inputs(folder: Path, lock_name: str) -> Iterator[str]:
    names = (MANIFEST, lock_name, *_CONFIGURATION)
    yield from (name for name in names if (folder / name).is_file())
    for name in _FOLDERS:
        found = sorted(path for path in (folder / name).rglob("*") if path.is_file())
        yield from (path.relative_to(folder).as_posix() for path in found)


def _in_place_because(folder: Path, manifest: dict[str, Any], command: str | None) -> str | None:
    if command is not None and not is_plain_install(command):
        return "its install command does more than install"
    if runs_own_scripts(manifest):
        return "package.json has scripts that run on install"
    settings = {n: _text(folder / n) for n in _CONFIGURATION if (folder / n).is_file()}
    if has_local_packages(manifest) or _OF_ITS_OWN.search(settings.get(_PNPMS, "")):
        return "it has packages or patches of its own"
    texts = (text for name, text in settings.items() if not name.startswith(".pnpmfile"))
    if any(map(_OTHER_FILES.search, texts)):
        return "its settings name further files"
    return None


def _machine() -> str:
    """What packages are built for, and since when the machine runs.

    What was not yet on the disk when its power went may be empty files now, and to write out
    thousands of them after each installation would cost more than to install anew.
    """
    libc, _ = platform.libc_ver()
    start = _text(_START).strip() if _START.is_file() else ""
    return f"{platform.system()}-{platform.machine()}-{libc or 'musl'}-{start}"
