"""Private locations of a project, which begin without a key: no answer could show it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from pydantic.alias_generators import to_camel

from service.http.errors import InvalidError
from service.locations import actions, location_changes
from service.locations.model import LocationChange, LocationRow, LocationWrite
from service.locations.secrets import decrypt
from service.projects.resources.resource_type import (
    OWN_FIELDS,
    ResourceType,
    View,
    Work,
    look,
    reader,
)
from service.vault.encryption import DecryptionError, Vault


def find_slug(work: Work, location_id: str) -> str:
    """How checks name a location.

    Raises:
        NotFoundError: the account has none with this id.
    """
    return actions.find(work.connection, work.scope.account_id, location_id).slug_name


def _view(work: Work, location_id: str) -> View | None:
    def find() -> View:
        row = actions.find(work.connection, work.scope.account_id, location_id)
        whole = asdict(_decrypt(row, work.scope.vault))
        return {to_camel(name): whole[name] for name in whole.keys() - OWN_FIELDS}

    return look(find)


def _decrypt(row: LocationRow, vault: Vault) -> LocationRow:
    try:
        return decrypt(row, vault)
    except DecryptionError:
        return row


def _create(work: Work, body: LocationWrite) -> str:
    return actions.create_without_key(work.connection, work.scope, body)


def _replace(work: Work, location_id: str, body: LocationWrite) -> str:
    held = find_slug(work, location_id)
    if held != body.slug_name:
        raise InvalidError(
            f'"slugName" is {body.slug_name}, and that of a location cannot change; keep {held},'
            " or give the new location another logicalId.",
            keys=("slugName",),
        )
    sent: Mapping[str, Any] = body.model_dump(by_alias=True)
    change = LocationChange.model_validate({n: v for n, v in sent.items() if n != "slugName"})
    actions.change(work.connection, work.scope, location_id, change)
    return location_id


LOCATIONS: Final = ResourceType(
    placeholder="reference",
    is_number=False,
    read=reader(LocationWrite),
    view=_view,
    create=_create,
    replace=_replace,
    delete=lambda work, one: location_changes.delete(work.connection, work.scope, one),
)
