"""What an entry of the audit log says, in words."""

import re
from collections.abc import Mapping
from typing import Final

from contract.checks import CheckType
from service.web.forms.field_labels import label_of

_DONE: Final[Mapping[str, str]] = {
    "create": "Created",
    "change": "Changed",
    "replace": "Changed",
    "put": "Uploaded",
    "delete": "Deleted",
    "test": "Tested",
    "run": "Ran",
}
"""How the id of an operation begins, and what was done."""
_COMMANDS: Final[Mapping[str, str]] = {
    "accounts create": "Created account",
    "keys create": "Created API key",
    "keys revoke": "Revoked API key",
    "replaceOwnAlertSettings": "Changed alert settings of the account",
    "sign-in": "Signed in",
    "sign-in link": "Made sign-in link",
    "triggerCheckSessions": "Ran checks",
    "users create": "Created user",
    "users disable": "Disabled user",
    "users enable": "Enabled user",
    "users password": "Changed password of user",
    "users role": "Changed role of user",
}
_FIELDS: Final[Mapping[str, str]] = {
    "frequency": "Frequency",
    "frequencyOffset": "Offset",
    "slugName": "Slug",
    "link": "Link to choose one",
    "type": "Type",
}
"""Labels of forms that do not read well in a list."""
_THINGS: Final[Mapping[str, str]] = {
    "accounts": "Account",
    "check-sessions": "Runs by hand",
    "keys": "API keys",
    "private-locations": "Locations",
    "sessions": "Sign-ins",
    "triggers": "Trigger links",
}
_PARTS: Final = re.compile(r"[A-Z][a-z]+|[a-z]+")
_ACRONYMS: Final = frozenset(kind.value for kind in CheckType if len(kind.value) <= 4)
ACTIONS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "created": ("created", ("create", "put", "keys create", "users create")),
    "changed": ("changed", ("change", "replace", "users role", "users password", "users enable")),
    "deleted": ("deleted or revoked", ("delete", "keys revoke", "users disable")),
    "sign-ins": ("signed in", ("sign-in",)),
}
"""What one may choose to see: its words, and how the operations begin."""


def describe_operation(operation: str) -> str:
    """What was done: `createApiCheck` is `Created API check`."""
    if operation in _COMMANDS:
        return _COMMANDS[operation]
    first, *rest = _PARTS.findall(operation.replace("MultiStep", "Multistep"))
    if " " in operation or first not in _DONE:
        return operation
    things = [part.upper() if part.upper() in _ACRONYMS else part.lower() for part in rest]
    return " ".join([_DONE[first], *things]).replace("multistep", "multi-step")


def name_kind(resource: str) -> str:
    """A kind of things, as the filter names it."""
    return _THINGS.get(resource) or resource.replace("-", " ").capitalize()


def name_fields(fields: tuple[str, ...]) -> str:
    """What was set or changed, by the labels that forms have."""
    labels = [_FIELDS.get(name) or label_of(name) for name in fields]
    return ", ".join(labels[:1] + [_lower(label) for label in labels[1:]])


def _lower(label: str) -> str:
    """A label within a sentence; abbreviations stay as they are."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]
