"""The scripts of a check as its runs need them: its own, and the snippets that it uses."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog
from sqlalchemy import Connection

from contract.checks import SPEC_TYPES, ApiSpec, CheckSpec, CheckType
from contract.scripted import BrowserSpec, MultiStepSpec, PlaywrightSpec
from contract.wire import decode, encode
from service.bundles import actions as bundles
from service.checks import store, store_members
from service.checks.model import ScriptedRow
from service.checks.sealing import is_sealed, opened_spec, sealed_spec
from service.groups import actions as groups
from service.groups.model import GroupRow
from service.http.errors import InvalidError
from service.snippets import actions as snippets
from service.vault.sealing import UnsealableError, Vault

log = structlog.get_logger()

_Doc = Mapping[str, Any]
_SETUP: Final = ("localSetupScript", "setupSnippetId")
_TEARDOWN: Final = ("localTearDownScript", "tearDownSnippetId")


def completed(
    connection: Connection,
    account_id: str,
    spec: CheckSpec,
    *,
    doc: _Doc,
    group: GroupRow | None,
) -> CheckSpec:
    """The spec with what it needs of other features; no group: the check is in none.

    Raises:
        InvalidError: it names a snippet or a bundle that the account does not have.
    """
    match spec:
        case ApiSpec():
            return _with_phases(connection, account_id, spec, doc=doc, group=group)
        case BrowserSpec() | MultiStepSpec():
            scripts = [spec.script, *(file.content for file in spec.dependencies)]
            files = snippets.files_for(connection, account_id, scripts)
            return msgspec.structs.replace(spec, snippets=files)
        case PlaywrightSpec():
            _hold_bundle(connection, account_id, spec.bundle_sha256)
            return spec
        case _:
            return spec


def refresh(connection: Connection, account_id: str, *, vault: Vault) -> None:
    """A snippet has changed: runs that have not begun yet see it.

    Raises:
        InvalidError: a check's snippets are more than a job can carry now.
    """
    known = groups.of_account(connection, account_id)
    changed: dict[str, dict[str, bytes]] = {}
    for row in store.scripted(connection, account_id):
        group = known[row.group_id] if row.group_id is not None else None
        stored = _refreshed(connection, row, group, vault=vault)
        if stored is not None:
            changed[row.id] = {"spec": stored}
    store_members.put_effects(connection, changed)


def _refreshed(
    connection: Connection, row: ScriptedRow, group: GroupRow | None, *, vault: Vault
) -> bytes | None:
    """The spec to store. None: it stays, also where it does not open, which no run can mend."""
    named = {"account_id": row.account_id, "check_id": row.id}
    try:
        before = opened_spec(row.spec, vault, **named)
    except UnsealableError as problem:
        log.exception("checks.unreadable", check_id=row.id, reason=str(problem))
        return None
    spec = decode(before, SPEC_TYPES[CheckType(row.type)])
    fresh = encode(completed(connection, row.account_id, spec, doc=row.doc, group=group))
    if fresh == before:
        return None
    return sealed_spec(fresh, vault, **named) if is_sealed(row.spec) else fresh


def phases(connection: Connection, account_id: str, doc: _Doc) -> tuple[str | None, str | None]:
    """The setup and the teardown that a check or a group names. None: there is none.

    Raises:
        InvalidError: it names a snippet that the account does not have.
    """
    return (
        _phase(connection, account_id, doc, _SETUP),
        _phase(connection, account_id, doc, _TEARDOWN),
    )


def _with_phases(
    connection: Connection, account_id: str, spec: ApiSpec, *, doc: _Doc, group: GroupRow | None
) -> ApiSpec:
    setup, teardown = phases(connection, account_id, doc)
    of_group = phases(connection, account_id, group.doc) if group else (None, None)
    scripts = [script for script in (setup, teardown, *of_group) if script]
    files = snippets.files_for(connection, account_id, scripts)
    return msgspec.structs.replace(
        spec,
        group_setup_script=of_group[0],
        setup_script=setup,
        teardown_script=teardown,
        group_teardown_script=of_group[1],
        snippets=files,
    )


def _phase(
    connection: Connection, account_id: str, doc: _Doc, fields: tuple[str, str]
) -> str | None:
    own, named = fields
    snippet_id = doc.get(named)
    if snippet_id is None:
        script: str | None = doc.get(own)
        return script
    found = snippets.script_of(connection, account_id, snippet_id)
    if found is None:
        raise InvalidError(
            f'"{named}" is {snippet_id}, and there is no snippet with this id.', keys=(named,)
        )
    return found


def _hold_bundle(connection: Connection, account_id: str, sha256: str) -> None:
    if not bundles.is_there(connection, account_id, sha256):
        raise InvalidError(
            '"codeBundlePath" names a bundle that was not sent; send the tar.gz to'
            f" PUT /v1/code-bundles/{sha256} first.",
            keys=("codeBundlePath",),
        )
