"""A suite on disk: its bundle unpacked, its working directory found, its Node chosen."""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from contract.result import FailureKind
from contract.scripted import PlaywrightSpec
from runners.kit.failures import CheckFailed
from runners.kit.isolation.workspace import Workspace
from runners.kit.scripts.runtimes import MissingRuntimeError, Runtime, Runtimes
from runners.kit.suites.bundle_archive import unpack
from runners.kit.suites.bundle_members import BadBundleError
from runners.kit.suites.installation import is_inside
from runners.kit.suites.package_manager import BUN

_PROGRAM: Final = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Where the parts of one run of a suite are."""

    workspace: Workspace
    root: Path
    """The unpacked bundle."""
    working_dir: Path
    """Where the test command runs."""
    runtime: Runtime

    @property
    def programs(self) -> Path:
        """Comes first in PATH: package managers that the runtime has not got."""
        return self.workspace.folder / "programs"

    @property
    def home(self) -> Path:
        """HOME and TMPDIR of all processes."""
        return self.workspace.folder / "home"

    @property
    def browsers(self) -> Path:
        """Where Playwright looks for browsers."""
        return self.workspace.folder / "browsers"


def open_project(
    bundle: Path, spec: PlaywrightSpec, workspace: Workspace, runtimes: Runtimes
) -> Project:
    """Unpack a bundle into a run's workspace; it blocks.

    Raises:
        CheckFailed: the bundle cannot be unpacked, or does not hold what the check names.
        MissingRuntimeError: there is no Node here at all.
        OSError: the disk refuses it.
    """
    runtime = runtime_of(spec, runtimes)
    root = _unpacked(bundle, workspace.folder / "suite")
    project = Project(
        workspace=workspace,
        root=root,
        working_dir=_working_dir(root, spec.working_dir),
        runtime=runtime,
    )
    for folder in (project.programs, project.home):
        folder.mkdir()
    return project


def _unpacked(bundle: Path, root: Path) -> Path:
    root.mkdir()
    try:
        unpack(bundle, root)
    except BadBundleError as problem:
        raise _refused(str(problem)) from problem
    return root


def add_programs(project: Project, programs: Mapping[str, str]) -> None:
    """Put shell scripts with these contents where commands find them; it blocks."""
    for name, content in programs.items():
        path = project.programs / name
        path.write_text(content)
        path.chmod(_PROGRAM)


def runtime_of(spec: PlaywrightSpec, runtimes: Runtimes) -> Runtime:
    """The one with the engine version of the check, which says more than its runtime does.

    Where it names no version: its runtime, or the newest.

    Raises:
        CheckFailed: nobody here has such an engine.
        MissingRuntimeError: there is no Node here, or not the one that the check names.
    """
    if not runtimes.installed:
        raise MissingRuntimeError("No runtime is installed on this machine.")
    wanted = (spec.engine_version or "").strip().removeprefix("v")
    if spec.engine == "bun" and not _fits(BUN, wanted):
        raise _refused(
            f"Bun {spec.engine_version} is not available at this location; it has {BUN}."
        )
    if spec.engine == "bun" or not wanted:
        # Playwright's own program asks for Node, also where Bun starts it.
        return runtimes.get(spec.runtime_id)
    of_check = [one for one in runtimes.by_id.values() if one.id == spec.runtime_id]
    for runtime in (*of_check, *runtimes.by_id.values()):
        if _fits(runtime.node_version, wanted):
            return runtime
    here = ", ".join(runtime.node_version for runtime in runtimes.by_id.values())
    raise _refused(f"Node {spec.engine_version} is not available at this location; it has {here}.")


def _fits(version: str, wanted: str) -> bool:
    """Whether `24.19.0` is what `24`, `24.x` or `24.19` asks for; nothing asks for anything."""
    asked = [part for part in wanted.split(".") if part not in {"", "x", "*"}]
    return version.split(".")[: len(asked)] == asked


def _working_dir(root: Path, named: str | None) -> Path:
    parts = PurePosixPath((named or "").strip().lstrip("/")).parts
    folder = root.joinpath(*parts)
    if ".." in parts or not _is_folder(folder) or not is_inside(folder, root):
        raise _refused(f"The working directory {named!r} is not in the code bundle.")
    return folder


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):  # ValueError: a NUL in its name
        return False


def _refused(message: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, message)
