"""Request and response bodies of variables."""

from typing import Annotated, Any, Final

import structlog
from pydantic import AfterValidator, Field

from service.http.errors import UnreadableError
from service.http.schema import (
    RequestModel,
    ResponseModel,
    Text,
    check_pattern,
    field_error,
    judged_by,
)
from service.variables.model import Level, VariableRow
from service.variables.rules import (
    KEY_PATTERN,
    KEY_WORDS,
    MAX_KEY_LETTERS,
    MAX_VALUE_BYTES,
    find_repeated,
    value_problem,
)
from service.vault.encryption import DecryptionError, Vault, Viewer
from service.vault.texts import HIDDEN, NotEchoed

MAX_OF_ONE: Final = 50
"""Variables of one check or group."""

Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_KEY_LETTERS,
        json_schema_extra={"pattern": KEY_PATTERN, "examples": ["API_URL"]},
    ),
    check_pattern(KEY_PATTERN, KEY_WORDS),
]
"""What templates and scripts call it by."""
Value = Annotated[Text, Field(max_length=MAX_VALUE_BYTES), judged_by(value_problem), NotEchoed]


class VariableValue(RequestModel):
    """A variable without its key."""

    value: Value
    """Empty for a secret that stays one, or `*********`, keeps the stored value."""
    locked: bool = False
    """Shown only to keys that may write; redacted in results like a secret."""
    secret: bool = False
    """Never shown again, and redacted in results."""


class VariableWrite(VariableValue):
    """A variable as people send it."""

    key: Key
    """Requests name it as `{{API_URL}}`, scripts as `process.env.API_URL`."""
    value: Value
    """The value; that of a secret must not be empty."""


class VariableChange(VariableValue):
    """A variable that takes the place of one that is there."""

    key: Key | None = None
    """Another one: the variable is renamed. Null or left out: it keeps its key."""


class EnvironmentVariable(VariableValue):
    """A variable of a check or a group."""

    key: Key


def _check_repeated(given: list[EnvironmentVariable] | None) -> list[EnvironmentVariable]:
    if key := find_repeated(one.key for one in given or ()):
        raise field_error("", f"has {key} twice; use each key once")
    return given or []


EnvironmentVariables = Annotated[
    Annotated[list[EnvironmentVariable], Field(max_length=MAX_OF_ONE)] | None,
    AfterValidator(_check_repeated),
]
"""The field of checks and groups; null is an empty one."""


class VariableShown(ResponseModel):
    """A variable; a secret's value is empty.

    That of a locked one is `*********` for keys that only read, and so is, in a list, one that
    cannot be read any more.
    """

    key: str
    value: str
    locked: bool
    secret: bool


log = structlog.get_logger()


def render(row: VariableRow, viewer: Viewer) -> VariableShown:
    """A variable as its answer; what is not shown is not even opened.

    Raises:
        UnreadableError: its value is to be shown, and cannot be decrypted.
    """
    value = _value(row, viewer)
    return VariableShown(key=row.key, value=value, locked=row.locked, secret=row.secret)


def _value(row: VariableRow, viewer: Viewer) -> str:
    if row.secret:
        return ""
    if row.locked and not viewer.may_write:
        return HIDDEN
    try:
        return _decrypt(row, viewer.vault)
    except UnreadableError:
        if viewer.hides_unreadable:
            return HIDDEN
        raise


def render_doc(row: VariableRow, viewer: Viewer) -> dict[str, Any]:
    """A variable as a part of a larger answer."""
    return render(row, viewer).model_dump(mode="json")


def compare(row: VariableRow, vault: Vault) -> dict[str, Any]:
    """All of it, a secret's value too: to tell what a change changed, and never for an answer.

    A value that cannot be decrypted is like no other, so that whatever takes its place is a change.
    """
    try:
        value = vault.decrypt(row.value, row.place)
    except DecryptionError:
        value = None
    return {"key": row.key, "value": value, "locked": row.locked, "secret": row.secret}


def _decrypt(row: VariableRow, vault: Vault) -> str:
    try:
        return vault.decrypt(row.value, row.place)
    except DecryptionError as problem:
        level, owner_id = row.owner.level, row.owner.owner_id
        where = {"level": level.value, "owner": owner_id, "key": row.key}
        log.exception("variables.unreadable", reason=str(problem), **where)
        whose = "the account" if level is Level.ACCOUNT else f"{level} {owner_id}"
        raise UnreadableError(
            f"The stored value of the variable {row.key} of {whose} cannot be read: {problem}."
            " Replace it, or delete it."
        ) from problem
