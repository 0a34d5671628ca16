"""`picket apply`: deploys the documents of files."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contract.checks import CheckType
from picket.api_client import ApiRefusedError, PublicApi
from picket.code.applying.deployments import Action, Deployments, Entry
from picket.code.applying.plan_text import plan_lines
from picket.code.applying.planning import Planner
from picket.code.applying.stored import Stored, find_by_slug
from picket.code.reading.documents import Kind, Project, read_project
from picket.code.reading.env_values import EnvValues
from picket.code.reading.linking import Linked, link
from picket.code.suites import send_suites
from picket.errors import CommandError, ExitCode
from picket.service_access import use_api
from picket.terminal import Terminal, printable

CHANGES: Final = 4
"""The exit code of `--dry-run --exit-code` if there is something to change."""
_LOOK_EVERY_S: Final = 1.0
_NO_LOCATION: Final = "You have to set at least one `location` or `privateLocation`"
"""How the service says it, as the established one does."""
_NAME_ONE: Final = "it has no location; name one in privateLocations, here or in its group"
_REMEDY: Final = "set it in the environment, or use --keep-secrets for what the service has"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """What a person may choose."""

    paths: tuple[Path, ...]
    data_dir: Path
    environ: Mapping[str, str]
    dry_run: bool = False
    exit_code: bool = False
    prune: bool = False
    watch: bool = False
    keep_secrets: bool = False


def apply_files(options: ApplyOptions, terminal: Terminal) -> int:
    """Deploy the files, or say what that would change; gives the exit code.

    Raises:
        CommandError: a file or a setting is wrong, or the service refuses.
    """
    if not options.watch:
        return asyncio.run(_apply(options, terminal))
    seen: dict[Path, tuple[int, int]] = {}
    while True:
        found = _stamps(options.paths)
        if found != seen:
            seen = found
            try:
                asyncio.run(_apply(options, terminal))
            except CommandError as problem:
                if problem.code is ExitCode.KEY_REFUSED:
                    raise
                _say(terminal, [problem.message])
            _say(terminal, ["Watching for changes; Ctrl-C ends it."])
        asyncio.run(asyncio.sleep(_LOOK_EVERY_S))


def _stamps(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """When files below the paths were written, and how long they are."""
    found: dict[Path, tuple[int, int]] = {}
    for path in paths:
        for file in _walk(path) if path.is_dir() else [path]:
            with suppress(OSError):
                state = file.stat()
                found[file] = (state.st_mtime_ns, state.st_size)
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "node_modules" and name[0] != "."]
        yield from (Path(parent) / name for name in files)


async def _apply(options: ApplyOptions, terminal: Terminal) -> int:
    values = EnvValues(options.environ, remedy=_REMEDY, keep_missing=options.keep_secrets)
    project = values.fill(read_project(options.paths))
    if options.prune and not project.is_whole:
        raise CommandError(
            "--prune deletes what is not in the files; give the folder of the whole project"
        )
    async with use_api(options.environ, options.data_dir) as api:
        try:
            return await _apply_at(api, project, values, options, terminal)
        except ApiRefusedError as refused:
            if refused.status == 401:
                raise
            raise CommandError(_explain(refused.reason, values), ExitCode.FAILED) from refused
        except CommandError as problem:
            raise CommandError(_explain(problem.message, values), problem.code) from problem


def _explain(reason: str, values: EnvValues) -> str:
    """A refusal in the words of documents, and without their secrets."""
    return values.hide(reason.replace(_NO_LOCATION, _NAME_ONE))


async def _apply_at(
    api: PublicApi,
    project: Project,
    values: EnvValues,
    options: ApplyOptions,
    terminal: Terminal,
) -> int:
    stored = Stored(api)
    locations = await stored.locations()
    linked = link(project, locations)
    await send_suites(api, linked)
    linked.resources = [
        await stored.without_strange_id(find_by_slug(one, locations)) for one in linked.resources
    ]
    deployments = Deployments(api, _body(project, linked), keep=not options.prune)
    plan = await Planner(deployments, stored, linked, values).plan(prunes=options.prune)
    _say(terminal, [*linked.notes, *plan_lines(plan)])
    if options.dry_run:
        return CHANGES if options.exit_code and not plan.is_empty else ExitCode.OK
    if not plan.is_done:
        waits = ["Another deployment of the project is going on; waiting for it."]
        changes = await deployments.deploy(lambda: _say(terminal, waits))
        _say(terminal, [f"Deployed to {api.url}.", *await _left_to_do(stored, linked, changes)])
    return ExitCode.OK


async def _left_to_do(stored: Stored, linked: Linked, changes: Iterable[Entry]) -> list[str]:
    """What somebody does by hand after resources were created."""
    created = {one.key: one.physical_id for one in changes if one.action is Action.CREATE}
    lines: list[str] = []
    for one in linked.resources:
        physical_id, payload = created.get((one.type, one.logical_id)), one.payload or {}
        if physical_id is None:
            continue
        if payload.get("checkType") == CheckType.HEARTBEAT:
            made = await stored.read(one.type, physical_id) or {}
            ping_url = (made.get("heartbeat") or {}).get("pingUrl")
            lines.append(f"{payload['name']}: let the job ping {ping_url}")
        elif one.type == Kind.PRIVATE_LOCATION.resource_type:
            lines.append(
                f"{payload['name']}: has no agent yet; create a key for one on the location's page,"
                f" or by POST /v1/private-locations/{physical_id}/keys"
            )
    return lines


def _body(project: Project, linked: Linked) -> dict[str, Any]:
    return {
        "project": {"logicalId": project.logical_id, "name": project.name},
        "sharedFiles": linked.shared_files,
        "resources": [one.to_wire() for one in linked.resources],
        "repoInfo": None,
    }


def _say(terminal: Terminal, lines: Iterable[str]) -> None:
    for line in lines:
        terminal.print(printable(line), markup=False, highlight=False, soft_wrap=True)
