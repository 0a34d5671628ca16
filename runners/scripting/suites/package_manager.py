"""npm, pnpm, yarn and bun: which one a project uses, how it installs, and the key of the result.

The key covers every file that an installation reads. The installation runs in a folder with only
these files, so nothing else of a suite can change what others with the same key get.
"""

import hashlib
import platform
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec


class Manager(StrEnum):
    """The package managers whose lock files are known."""

    NPM = "npm"
    PNPM = "pnpm"
    YARN_CLASSIC = "yarn-classic"
    YARN_BERRY = "yarn"
    BUN = "bun"


class UnknownManagerError(Exception):
    """No package manager here can install the suite, for the reason in the text; its own fault."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A package manager in one version, and its command for a lock file."""

    manager: Manager
    package: str | None
    """Its npm package with a version, such as `pnpm@10.34.8`. None: the runtime's own npm."""
    install: tuple[str, ...]
    """The command that installs exactly what the lock file says."""

    @property
    def command(self) -> str:
        """Its name on a command line."""
        return self.install[0]


LOCK_FILES: Final = (
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
)
"""The known lock files, in order of preference where `packageManager` does not decide."""

MANIFEST: Final = "package.json"

_PNPM_OF_LOCK: Final = {"5": "7.33.7", "6": "8.15.9", "9": "10.34.8"}
"""The pnpm that writes each version of the lock file."""
_NEWEST_LOCK: Final = "9"
_BERRY_OF_LOCK: Final = {"4": "3.8.6", "5": "3.8.6", "6": "3.8.6"}
_BERRY: Final = "4.18.1"
_CLASSIC: Final = "1.22.22"
BUN: Final = "1.3.14"
"""This version reads all lock files of Bun, including the older binary one."""
_EXACT: Final = re.compile(r"(npm|pnpm|yarn|bun)@(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)(?:\+.*)?")
_PNPM_LOCK_VERSION: Final = re.compile(r"^lockfileVersion:\s*['\"]?(\d+)", re.MULTILINE)
_BERRY_LOCK_VERSION: Final = re.compile(r"^__metadata:\s*\n\s+version:\s*(\d+)", re.MULTILINE)
_CORE_INSTALLS: Final = re.compile(
    r"(npm (ci|install|i|clean-install)|(pnpm|bun) (install|i)|yarn( install)?)(?=\s|$)"
)
_SHELL_SIGNS: Final = frozenset(";&|<>()$`\\\n")


def choose_lock_file(present: Mapping[str, str], manifest: Mapping[str, Any]) -> str | None:
    """Choose the lock file to use among those that are present. None: there is none."""
    named, _ = _read_declared(manifest)
    found = [name for name in LOCK_FILES if name in present]
    wanted = [name for name in found if _find_family(name) == named]
    return next(iter((*wanted, *found)), None)


def choose_tool(lock_name: str, lock_text: str, manifest: Mapping[str, Any]) -> Tool:
    """Choose the package manager that reads this lock file.

    Raises:
        UnknownManagerError: no package manager here reads it.
    """
    named, version = _read_declared(manifest)
    family = _find_family(lock_name)
    exact = version if named == family else None
    if family == "npm":
        return Tool(manager=Manager.NPM, package=None, install=_NPM_INSTALL)
    if family == "bun":
        install = ("bun", "install", "--frozen-lockfile")
        return Tool(manager=Manager.BUN, package=f"bun@{exact or BUN}", install=install)
    return _choose_pnpm(lock_text, exact) if family == "pnpm" else _choose_yarn(lock_text, exact)


def is_plain_install(command: str) -> bool:
    """Whether a command only installs, so that what it leaves in node_modules is all it does."""
    core = _CORE_INSTALLS.match(command.strip())
    if core is None or _SHELL_SIGNS & set(command):
        return False
    rest = command.strip()[core.end() :].split()
    return all(word.startswith("-") for word in rest)


def runs_own_scripts(manifest: Mapping[str, Any]) -> bool:
    """Whether installing runs scripts of the suite itself, which may write anywhere."""
    scripts = manifest.get("scripts")
    return isinstance(scripts, dict) and not _LIFECYCLE.isdisjoint(scripts)


def has_local_packages(manifest: Mapping[str, Any]) -> bool:
    """Whether a dependency is a folder or file of the suite, or the suite is several packages."""
    of_pnpm = manifest.get("pnpm")
    parts = (manifest, of_pnpm if isinstance(of_pnpm, dict) else {})
    if manifest.get("workspaces") or any(part.get("patchedDependencies") for part in parts):
        return True
    groups = (part.get(name) for part in parts for name in _DEPENDENCY_GROUPS)
    return any(_is_local(wish) for group in groups for wish in _list_texts(group))


def _list_texts(group: object) -> Iterator[str]:
    """List all version specifiers of a group of dependencies, however they are nested."""
    waiting = [group] if isinstance(group, dict) else []
    while waiting:
        for wish in waiting.pop().values():
            if isinstance(wish, dict):
                waiting.append(wish)
            elif isinstance(wish, str):
                yield wish


def _is_local(wish: str) -> bool:
    # Every installation gets yarn's own folder of patches.
    return wish.startswith(_LOCAL) and "/.yarn/patches/" not in wish


_NPM_INSTALL: Final = ("npm", "ci", "--no-audit", "--no-fund")
_LIFECYCLE: Final = frozenset(
    {
        "preinstall",
        "install",
        "postinstall",
        "prepublish",
        "preprepare",
        "prepare",
        "postprepare",
        "dependencies",
    }
)
_DEPENDENCY_GROUPS: Final = (
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "overrides",
    "resolutions",
)
_LOCAL: Final = ("file:", "link:", "portal:", "workspace:", "patch:", ".", "/", "~/")


def _find_family(lock_name: str) -> str:
    if lock_name.startswith("bun"):
        return "bun"
    return {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"}.get(lock_name, "npm")


def _read_declared(manifest: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Read the manager and the version that `packageManager` names. None: it names none."""
    declared = manifest.get("packageManager")
    found = _EXACT.fullmatch(declared) if isinstance(declared, str) else None
    return (found[1], found[2]) if found else (None, None)


def _choose_pnpm(lock_text: str, exact: str | None) -> Tool:
    found = _PNPM_LOCK_VERSION.search(lock_text)
    written_by = found[1] if found else _NEWEST_LOCK
    if exact is None and written_by not in _PNPM_OF_LOCK:
        raise UnknownManagerError(
            f"The suite's pnpm-lock.yaml has version {written_by}, which no pnpm here reads; name "
            "the pnpm that wrote it as `packageManager` in package.json."
        )
    version = exact or _PNPM_OF_LOCK[written_by]
    install = ("pnpm", "install", "--frozen-lockfile")
    return Tool(manager=Manager.PNPM, package=f"pnpm@{version}", install=install)


def _choose_yarn(lock_text: str, exact: str | None) -> Tool:
    found = _BERRY_LOCK_VERSION.search(lock_text)
    if found is None:
        is_classic = exact is not None and exact.startswith("1.")
        version = exact if is_classic else _CLASSIC
        install = ("yarn", "install", "--frozen-lockfile", "--non-interactive")
        return Tool(manager=Manager.YARN_CLASSIC, package=f"yarn@{version}", install=install)
    version = exact or _BERRY_OF_LOCK.get(found[1], _BERRY)
    package = f"@yarnpkg/cli-dist@{version}"
    return Tool(
        manager=Manager.YARN_BERRY, package=package, install=("yarn", "install", "--immutable")
    )


_FORMAT: Final = "3"
"""Raised when installations change, so that packages of older versions are not found."""
_CONFIGURATION: Final = (
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    "pnpm-workspace.yaml",
    "bunfig.toml",
)
_PNPM_SETTINGS: Final = "pnpm-workspace.yaml"
_LOCAL_SETTING: Final = re.compile(
    r"^(packages|patchedDependencies):|:\s*['\"]?(file|link|portal):", re.MULTILINE
)
"""Matches pnpm's settings that install folders and files of the suite."""
_OTHER_FILES: Final = re.compile(
    r"^[^#;\n]*(cafile|certfile|keyfile|pnpmfile|ca_?filepath|cert_?filepath|key_?filepath)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches settings of any manager that name further files."""
_FOLDERS: Final = (".yarn/releases", ".yarn/plugins", ".yarn/patches")
_START: Final = Path("/proc/sys/kernel/random/boot_id")
_LARGEST_BYTES: Final = 64 * 1024**2


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """One installation of a suite's dependencies."""

    folder: Path
    """The folder of the lock file, where node_modules belongs."""
    tool: Tool
    command: str | None
    """The suite's own shell command. None: the tool's command."""
    inputs: tuple[str, ...]
    """The files that it reads, relative to the folder."""
    in_place_because: str | None
    """Why its packages cannot be kept for other runs. None: they can."""

    def settings(self) -> tuple[str, ...]:
        """Read the suite's settings for its package manager; it blocks."""
        return tuple(
            _read_text(self.folder / name) for name in self.inputs if name in _CONFIGURATION
        )


def plan_installation(root: Path, working_dir: Path, command: str) -> Installation:
    """Plan the installation of the suite in `root` that runs in `working_dir`; it blocks.

    Raises:
        UnknownManagerError: there is no lock file, or none that is known.
        OSError: the disk fails.
    """
    folder, lock_name = _find_lock_file(root, working_dir)
    manifest = _read_manifest(folder)
    lock_text = _read_text(folder / lock_name)
    tool = choose_tool(lock_name, lock_text, manifest)
    if tool.manager is Manager.NPM:
        _decode(lock_name, lock_text)
    own = command.strip() or None
    return Installation(
        folder=folder,
        tool=tool,
        command=own,
        inputs=tuple(_list_inputs(folder, lock_name)),
        in_place_because=_find_reason_in_place(folder, manifest, own),
    )


def compute_key(wanted: Installation, root: Path, working_dir: Path, engine: str) -> str:
    """Compute the key of an installation from all that it reads; it blocks."""
    where = (str(wanted.folder.relative_to(root)), str(working_dir.relative_to(root)))
    words = (
        _FORMAT,
        engine,
        _describe_machine(),
        wanted.command or "",
        wanted.tool.package or "",
        *where,
    )
    digest = hashlib.sha256("\0".join(words).encode())
    for name in wanted.inputs:
        with (wanted.folder / name).open("rb") as file:
            content = hashlib.file_digest(file, hashlib.sha256)
            digest.update(f"\0{name}\0{file.tell()}\0".encode())
        digest.update(content.digest())
    return digest.hexdigest()


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path leads into the folder, also through links."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except RuntimeError:  # links in a circle lead nowhere
        return False


def _find_lock_file(root: Path, working_dir: Path) -> tuple[Path, str]:
    """Find the nearest lock file from the working directory upwards: its folder and name."""
    for folder in _list_upwards(root, working_dir):
        present = {name: "" for name in LOCK_FILES if (folder / name).is_file()}
        name = choose_lock_file(present, _read_manifest(folder) if present else {})
        if name is not None:
            return folder, name
    raise UnknownManagerError(
        "The suite has no lock file (package-lock.json, pnpm-lock.yaml, yarn.lock or bun.lock); "
        "commit the one that your package manager writes: `npm install --package-lock-only`, "
        "`pnpm install`, `yarn install` or `bun install` make it."
    )


def _list_upwards(root: Path, folder: Path) -> Iterator[Path]:
    while folder != root:
        yield folder
        folder = folder.parent
    yield root


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not (folder / MANIFEST).is_file():
        raise UnknownManagerError("There is no package.json beside the lock file.")
    return _decode(MANIFEST, _read_text(folder / MANIFEST))


def _decode(name: str, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as problem:
        raise UnknownManagerError(f"The suite's {name} is no JSON: {problem}.") from problem
    except RecursionError as problem:
        raise UnknownManagerError(f"The suite's {name} is nested too deeply.") from problem


def _read_text(path: Path) -> str:
    if path.stat().st_size > _LARGEST_BYTES:
        raise UnknownManagerError(f"The suite's {path.name} has more than {_LARGEST_BYTES} bytes.")
    return path.read_text(encoding="utf-8-sig", errors="replace")


def _list_inputs(folder: Path, lock_name: str) -> Iterator[str]:
    names = (MANIFEST, lock_name, *_CONFIGURATION)
    yield from (name for name in names if (folder / name).is_file())
    for name in _FOLDERS:
        found = sorted(path for path in (folder / name).rglob("*") if path.is_file())
        yield from (path.relative_to(folder).as_posix() for path in found)


def _find_reason_in_place(
    folder: Path, manifest: dict[str, Any], command: str | None
) -> str | None:
    if command is not None and not is_plain_install(command):
        return "its install command does more than install"
    if runs_own_scripts(manifest):
        return "package.json has scripts that run on install"
    settings = {n: _read_text(folder / n) for n in _CONFIGURATION if (folder / n).is_file()}
    if has_local_packages(manifest) or _LOCAL_SETTING.search(settings.get(_PNPM_SETTINGS, "")):
        return "it has packages or patches of its own"
    texts = (text for name, text in settings.items() if not name.startswith(".pnpmfile"))
    if any(map(_OTHER_FILES.search, texts)):
        return "its settings name further files"
    return None


def _describe_machine() -> str:
    """Describe the platform that packages are built for, and the machine's current boot.

    After a power cut, files that were not on disk yet may be empty. Syncing thousands of them after
    each installation would take longer than installing again after each boot.
    """
    libc, _ = platform.libc_ver()
    start = _read_text(_START).strip() if _START.is_file() else ""
    return f"{platform.system()}-{platform.machine()}-{libc or 'musl'}-{start}"
