"""Which package manager installs a suite, in which version, and with which command. Pure."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
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
    """Nobody here can install this suite; the text says why. The fault of whoever made it."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A package manager in one version, and what it does with a lock file."""

    manager: Manager
    package: str | None
    """As npm fetches it, such as `pnpm@10.34.8`. None: the runtime's own npm."""
    install: tuple[str, ...]
    """The command that installs what the lock file says, nothing else."""

    @property
    def command(self) -> str:
        """What it is called on a command line."""
        return self.install[0]


LOCK_FILES: Final = (
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
)
"""In order of preference, when `packageManager` does not say which."""

MANIFEST: Final = "package.json"

_PNPM_OF_LOCK: Final = {"5": "7.33.7", "6": "8.15.9", "9": "10.34.8"}
"""The pnpm that writes each version of the lock file."""
_NEWEST_LOCK: Final = "9"
_BERRY_OF_LOCK: Final = {"4": "3.8.6", "5": "3.8.6", "6": "3.8.6"}
_BERRY: Final = "4.18.1"
_CLASSIC: Final = "1.22.22"
BUN: Final = "1.3.14"
"""Reads each lock file of Bun, also the one of before that is no text."""
_EXACT: Final = re.compile(r"(npm|pnpm|yarn|bun)@(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)(?:\+.*)?")
_PNPM_LOCK_VERSION: Final = re.compile(r"^lockfileVersion:\s*['\"]?(\d+)", re.MULTILINE)
_BERRY_LOCK_VERSION: Final = re.compile(r"^__metadata:\s*\n\s+version:\s*(\d+)", re.MULTILINE)
_CORE_INSTALLS: Final = re.compile(
    r"(npm (ci|install|i|clean-install)|(pnpm|bun) (install|i)|yarn( install)?)(?=\s|$)"
)
_SHELL_SIGNS: Final = frozenset(";&|<>()$`\\\n")


def lock_file(present: Mapping[str, str], manifest: Mapping[str, Any]) -> str | None:
    """Which lock file counts, of those that are there. None: there is none."""
    named, _ = _declared(manifest)
    found = [name for name in LOCK_FILES if name in present]
    wanted = [name for name in found if _family(name) == named]
    return next(iter((*wanted, *found)), None)


def tool_of(lock_name: str, lock_text: str, manifest: Mapping[str, Any]) -> Tool:
    """Who reads this lock file.

    Raises:
        UnknownManagerError: nobody here does.
    """
    named, version = _declared(manifest)
    family = _family(lock_name)
    exact = version if named == family else None
    if family == "npm":
        return Tool(manager=Manager.NPM, package=None, install=_NPM_INSTALL)
    if family == "bun":
        install = ("bun", "install", "--frozen-lockfile")
        return Tool(manager=Manager.BUN, package=f"bun@{exact or BUN}", install=install)
    return _pnpm(lock_text, exact) if family == "pnpm" else _yarn(lock_text, exact)


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
    return any(_is_local(wish) for group in groups for wish in _texts(group))


def _texts(group: object) -> Iterator[str]:
    """All texts that wishes are made of, however they are nested."""
    waiting = [group] if isinstance(group, dict) else []
    while waiting:
        for wish in waiting.pop().values():
            if isinstance(wish, dict):
                waiting.append(wish)
            elif isinstance(wish, str):
                yield wish


def _is_local(wish: str) -> bool:
    # Patches of yarn lie where all installations are given them.
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


def _family(lock_name: str) -> str:
    if lock_name.startswith("bun"):
        return "bun"
    return {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn"}.get(lock_name, "npm")


def _declared(manifest: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The manager and the version that `packageManager` names; None: it names none."""
    declared = manifest.get("packageManager")
    found = _EXACT.fullmatch(declared) if isinstance(declared, str) else None
    return (found[1], found[2]) if found else (None, None)


def _pnpm(lock_text: str, exact: str | None) -> Tool:
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


def _yarn(lock_text: str, exact: str | None) -> Tool:
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
