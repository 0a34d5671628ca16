"""Resolves a check to what runs: its group's settings, snippets, variables and locations included.

This happens when a check or its group is written, so that ticks, claims and results read columns of
the check alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import structlog
from sqlalchemy import Connection

from contract.checks import (
    SPEC_TYPES,
    ApiSpec,
    BrowserSpec,
    CheckSpec,
    CheckType,
    Lane,
    MultiStepSpec,
    PlaywrightSpec,
    lane,
)
from contract.runtimes import runtime_problem
from contract.wire import decode, encode
from service.bundles import bundles
from service.checks import store
from service.checks.model import CheckRow, ScriptedRow, resolve_locations
from service.checks.schemas import CheckWrite, VariablesWrite
from service.checks.secrets import UNREADABLE_SPEC, decrypt_spec, encrypt_spec, is_encrypted
from service.checks.types.registry import TYPES
from service.groups import actions as groups
from service.groups.model import GroupRow
from service.groups.rules import apply_group
from service.http.errors import InvalidError
from service.http.schema import RequestModel
from service.locations import actions as locations
from service.locations.regions import RegionLocations
from service.snippets import actions as snippets
from service.variables.schemas import EnvironmentVariable
from service.vault.encryption import DecryptionError, Scope, Vault


@dataclass(frozen=True, slots=True)
class AccountLocations:
    """What an account has that its checks name."""

    account_id: str
    locations: Mapping[str, str]
    """Ids by slug, oldest first."""
    regions: RegionLocations


@dataclass(frozen=True, slots=True)
class ResolvedCheck:
    """What runs of a check go by."""

    columns: Mapping[str, Any]
    """The columns of the row that follow from the body, its group and its snippets."""
    location_ids: list[str]

    @property
    def activated(self) -> bool:
        """Whether it runs."""
        return bool(self.columns["activated"])

    @property
    def without_spec(self) -> "ResolvedCheck":
        """The check with a spec that cannot be decrypted, since one of its secrets cannot."""
        return replace(self, columns={**self.columns, "spec": UNREADABLE_SPEC})

    def is_of(self, row: CheckRow, spec: bytes | None) -> bool:
        """Whether a check of a group, whole, comes to this already.

        `spec`: what runs need by now. None: nobody knows.
        """
        return bool(self.columns["applied"] == row.applied and self.columns["spec"] == spec)


def read_locations(connection: Connection, scope: Scope) -> AccountLocations:
    """Asked once, however many checks it is for."""
    ids = locations.list_ids_by_slug(connection, scope.account_id)
    return AccountLocations(scope.account_id, ids, scope.regions)


def resolve_check(
    connection: Connection,
    owned: AccountLocations,
    doc: Mapping[str, Any],
    *,
    kind: CheckType,
    group: GroupRow | None,
) -> ResolvedCheck:
    """What a check in this group comes to; no group: it is in none.

    Raises:
        InvalidError: it names a location, snippet, bundle or runtime that is not there, or no
            location.
    """
    whole = apply_group(doc, kind, group) if group else doc
    location_ids = resolve_locations(owned.locations, whole, kind, regions=owned.regions)
    spec = complete_spec(
        connection, owned.account_id, build_spec(whole, kind), doc=whole, group=group
    )
    _require_runtime(whole["runtimeId"], spec)
    columns = {
        "lane": lane(spec).value,
        "activated": whole["activated"],
        "muted": whole["muted"],
        "run_parallel": whole["runParallel"],
        "group_id": group.id if group else None,
        "applied": whole if group else None,
        "spec": encode(spec),
    }
    return ResolvedCheck(columns, location_ids)


def _require_runtime(runtime_id: str | None, spec: CheckSpec) -> None:
    """Where there is a script, it needs a runtime that agents have; it may be the group's."""
    if runtime_id and lane(spec) is Lane.MAIN and (problem := runtime_problem(runtime_id)):
        raise InvalidError(f'"runtimeId" {problem}.', keys=("runtimeId",))


_NOT_IN_DOC: Final = {"environment_variables", "alert_channel_subscriptions", "check_type"}


def build_doc(body: RequestModel) -> dict[str, Any]:
    """A body as it is stored, with defaults; variables and subscriptions are stored elsewhere."""
    dumped = body.model_dump(mode="json", by_alias=True, exclude=_NOT_IN_DOC)
    whole: dict[str, Any] = _drop_points(dumped)
    return whole


def read_variables(check: CheckWrite) -> list[EnvironmentVariable] | None:
    """The check's own variables. None: its type has none."""
    return check.environment_variables or [] if isinstance(check, VariablesWrite) else None


def build_spec(doc: Mapping[str, Any], kind: CheckType) -> CheckSpec:
    """Turn a stored body into its Spec, without snippets: `complete_spec` adds those."""
    return TYPES[kind].write.to_spec(doc)


def _drop_points(value: Any) -> Any:
    """5000, not 5000.0: some clients read a whole number only without its point."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_drop_points(item) for item in value]
    if isinstance(value, dict):
        return {key: _drop_points(item) for key, item in value.items()}
    return value


log = structlog.get_logger()

_Doc = Mapping[str, Any]
_SETUP: Final = ("localSetupScript", "setupSnippetId")
_TEARDOWN: Final = ("localTearDownScript", "tearDownSnippetId")


def complete_spec(
    connection: Connection,
    account_id: str,
    spec: CheckSpec,
    *,
    doc: _Doc,
    group: GroupRow | None,
) -> CheckSpec:
    """The spec with what it needs of other features; no group: the check is in none.

    Raises:
        InvalidError: it names a snippet, bundle or snapshot that the account does not have.
    """
    match spec:
        case ApiSpec():
            return _add_phases(connection, account_id, spec, doc=doc, group=group)
        case BrowserSpec() | MultiStepSpec():
            if isinstance(spec, BrowserSpec):
                _require_snapshots(connection, account_id, spec)
            scripts = [spec.script, *(file.content for file in spec.dependencies)]
            files = snippets.collect_files(connection, account_id, scripts)
            return msgspec.structs.replace(spec, snippets=files)
        case PlaywrightSpec():
            _require_bundle(connection, account_id, spec.bundle_sha256)
            return spec
        case _:
            return spec


def refresh_specs(connection: Connection, account_id: str, *, vault: Vault) -> None:
    """A snippet has changed: runs that have not begun yet see it.

    Raises:
        InvalidError: a check's snippets are more than a job can carry now.
    """
    known = groups.list_by_id(connection, account_id)
    changed: dict[str, dict[str, bytes]] = {}
    for row in store.list_scripted(connection, account_id):
        group = known[row.group_id] if row.group_id is not None else None
        stored = _refresh_spec(connection, row, group, vault=vault)
        if stored is not None:
            changed[row.id] = {"spec": stored}
    store.update_resolved(connection, changed)


def _refresh_spec(
    connection: Connection, row: ScriptedRow, group: GroupRow | None, *, vault: Vault
) -> bytes | None:
    """The spec to store. None: it stays, as one that cannot be decrypted does."""
    named = {"account_id": row.account_id, "check_id": row.id}
    try:
        before = decrypt_spec(row.spec, vault, **named)
    except DecryptionError as problem:
        log.exception("checks.unreadable", check_id=row.id, reason=str(problem))
        return None
    spec = decode(before, SPEC_TYPES[CheckType(row.type)])
    fresh = encode(complete_spec(connection, row.account_id, spec, doc=row.doc, group=group))
    if fresh == before:
        return None
    return encrypt_spec(fresh, vault, **named) if is_encrypted(row.spec) else fresh


def find_phases(
    connection: Connection, account_id: str, doc: _Doc
) -> tuple[str | None, str | None]:
    """The setup and the teardown that a check or a group names. None: there is none.

    Raises:
        InvalidError: it names a snippet that the account does not have.
    """
    return (
        _find_phase(connection, account_id, doc, _SETUP),
        _find_phase(connection, account_id, doc, _TEARDOWN),
    )


def _add_phases(
    connection: Connection, account_id: str, spec: ApiSpec, *, doc: _Doc, group: GroupRow | None
) -> ApiSpec:
    setup, teardown = find_phases(connection, account_id, doc)
    of_group = find_phases(connection, account_id, group.doc) if group else (None, None)
    scripts = [script for script in (setup, teardown, *of_group) if script]
    files = snippets.collect_files(connection, account_id, scripts)
    return msgspec.structs.replace(
        spec,
        group_setup_script=of_group[0],
        setup_script=setup,
        teardown_script=teardown,
        group_teardown_script=of_group[1],
        snippets=files,
    )


def _find_phase(
    connection: Connection, account_id: str, doc: _Doc, fields: tuple[str, str]
) -> str | None:
    own, named = fields
    snippet_id = doc.get(named)
    if snippet_id is None:
        script: str | None = doc.get(own)
        return script
    found = snippets.find_script(connection, account_id, snippet_id)
    if found is None:
        raise InvalidError(
            f'"{named}" is {snippet_id}, and there is no snippet with this id.', keys=(named,)
        )
    return found


def _require_snapshots(connection: Connection, account_id: str, spec: BrowserSpec) -> None:
    for order, one in enumerate(spec.snapshots):
        if bundles.find_kept(connection, account_id, one.sha256) is None:
            key = f"snapshots[{order}].key"
            raise InvalidError(
                f'"{key}" names a snapshot that was not sent; upload it to'
                " POST /next/checkly-storage/upload first, and use the key of the answer.",
                keys=(key,),
            )


def _require_bundle(connection: Connection, account_id: str, sha256: str) -> None:
    if not bundles.is_there(connection, account_id, sha256):
        raise InvalidError(
            '"codeBundlePath" names a bundle that was not sent; send the tar.gz to'
            f" PUT /v1/code-bundles/{sha256} first.",
            keys=("codeBundlePath",),
        )
