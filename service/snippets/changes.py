"""Making, changing and deleting snippets, and what that means for the checks that use them."""

from sqlalchemy import Connection

from service.checks import actions as checks
from service.checks import scripted
from service.groups import actions as groups
from service.http.errors import ConflictError
from service.snippets import store
from service.snippets.actions import find
from service.snippets.model import SnippetRow, SnippetWrite
from service.vault.scope import Scope


def create(connection: Connection, scope: Scope, body: SnippetWrite) -> SnippetRow:
    """Make a snippet; scripts that import its name find it from their next run on.

    Raises:
        ConflictError: the account has one of this name.
    """
    _hold_free(connection, scope.account_id, body.name, but=None)
    row = {"account_id": scope.account_id, "name": body.name, "script": body.script}
    snippet_id = store.add(connection, {**row, "created_ms": scope.now_ms, "updated_ms": None})
    scripted.refresh(connection, scope.account_id, vault=scope.vault)
    return find(connection, scope.account_id, snippet_id)


def replace(
    connection: Connection, scope: Scope, snippet_id: int, body: SnippetWrite
) -> SnippetRow:
    """Change a snippet; the checks that use it run with the new one from their next run on.

    Raises:
        NotFoundError: the account has no such snippet.
        ConflictError: another one has this name.
    """
    find(connection, scope.account_id, snippet_id)
    _hold_free(connection, scope.account_id, body.name, but=snippet_id)
    values = {"name": body.name, "script": body.script, "updated_ms": scope.now_ms}
    store.change(connection, snippet_id, values)
    scripted.refresh(connection, scope.account_id, vault=scope.vault)
    return find(connection, scope.account_id, snippet_id)


def delete(connection: Connection, scope: Scope, snippet_id: int) -> None:
    """Forget a snippet. Scripts that import it by name fail from their next run on.

    Raises:
        NotFoundError: the account has no such snippet.
        ConflictError: it is a phase of a check or a group.
    """
    row = find(connection, scope.account_id, snippet_id)
    uses, names = checks.users_of_snippet(connection, scope.account_id, snippet_id)
    if uses:
        shown = ", ".join(names) + (" and others" if uses > len(names) else "")
        raise ConflictError(
            f"The snippet {row.name} is the setup or teardown of {uses} checks ({shown});"
            " change or delete them first."
        )
    if of_groups := groups.users_of_snippet(connection, scope.account_id, snippet_id):
        raise ConflictError(
            f"The snippet {row.name} is the setup or teardown of the check group {of_groups[0]};"
            " change that first."
        )
    store.remove(connection, snippet_id)
    scripted.refresh(connection, scope.account_id, vault=scope.vault)


def _hold_free(connection: Connection, account_id: str, name: str, *, but: int | None) -> None:
    if store.id_of(connection, account_id, name) not in (None, but):
        raise ConflictError(f"There is a snippet {name} already; use another name.")
