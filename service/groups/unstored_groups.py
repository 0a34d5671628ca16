"""Groups that are not stored: runs of checks that are not stored either go by them."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.checks.resolve import build_doc
from service.groups.model import GroupRow
from service.groups.schemas import AnyGroupWrite, build_variables
from service.variables.schemas import EnvironmentVariable
from service.vault.encryption import Scope
from service.vault.masked_values import restore_hidden

_NO_ID = 0
"""No group has it."""


@dataclass(frozen=True, slots=True)
class UnstoredGroup:
    """A group as it was sent."""

    row: GroupRow
    variables: Sequence[EnvironmentVariable]


def prepare_group(scope: Scope, body: AnyGroupWrite) -> UnstoredGroup:
    """The group for the checks that are sent with it.

    Raises:
        InvalidError: it hides a value, which is stored nowhere.
    """
    doc = restore_hidden(build_doc(body), None)
    row = GroupRow(
        id=_NO_ID,
        account_id=scope.account_id,
        name=body.name,
        form=body.form,
        doc=doc,
        created_ms=scope.now_ms,
        updated_ms=None,
    )
    return UnstoredGroup(row, build_variables(body, doc["apiCheckDefaults"]["url"]))
