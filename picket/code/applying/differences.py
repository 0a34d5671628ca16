"""Compares what is deployed with what is stored, field by field, and shows no secret. Pure."""

import dataclasses
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from picket.check_file.validate import hide_credentials

_HIDDEN_FIELDS: Final = frozenset(
    {"value", "password", "proxyUrl", "pingToken", "body", "data", "passphrase"}
)
_OPEN_IN_CONFIG: Final = frozenset(
    {"address", "number", "name", "account", "serviceName", "region", "priority", "method",
     "webhookType", "channel", "key", "locked"}
)  # fmt: skip
_NOT_SHOWN: Final = "changed (not shown)"
_SHOWN_CHARS: Final = 100
_SHOWN_LINES: Final = 30
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
_MASK: Final = "*********"
_NOT_COMPARED: Final = frozenset({"v", "checkType", "type"})


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field whose value changes."""

    path: str
    lines: tuple[str, ...]
    """How it changes: one line, or those of a text that differ."""
    new: object = dataclasses.field(default=None, repr=False)
    """The value that is wanted."""

    def without_values(self) -> "FieldChange":
        """That it changes, and nothing else."""
        return FieldChange(self.path, (_NOT_SHOWN,))


def find_changes(
    wanted: Mapping[str, Any], stored: Mapping[str, Any], names: Mapping[str, str]
) -> list[FieldChange]:
    """The fields of a body that are stored otherwise.

    `names`: physical ids to the logical ids of references.
    """
    return list(_compare_objects(wanted, stored, "", names, in_config=False))


def show_reset(field: str, stored: Any) -> FieldChange:
    """A field that changes, and that the files do not have."""
    if field in _HIDDEN_FIELDS or field == "config" or _has_hidden(stored):
        return FieldChange(field, (_NOT_SHOWN,))
    return FieldChange(field, (f"{_show(stored)} → default",))


def _compare_objects(
    wanted: Mapping[str, Any],
    stored: Mapping[str, Any],
    path: str,
    names: Mapping[str, str],
    *,
    in_config: bool,
) -> Iterator[FieldChange]:
    for field, value in wanted.items():
        if not path and field in _NOT_COMPARED:
            continue
        below = f"{path}.{field}" if path else field
        if field == "value" and wanted.get("secret") is True and stored.get("secret") is True:
            continue  # it is never shown; whether it changes is for the service to say
        inside = in_config or field == "config"
        yield from _compare(value, stored.get(field), below, names, in_config=inside)


def _compare(
    wanted: Any, stored: Any, path: str, names: Mapping[str, str], *, in_config: bool
) -> Iterator[FieldChange]:
    if isinstance(wanted, dict) and set(wanted) == {"ref"}:
        yield from _compare_reference(wanted["ref"], stored, path, names)
    elif isinstance(wanted, dict) and isinstance(stored, dict):
        yield from _compare_objects(wanted, stored, path, names, in_config=in_config)
    elif isinstance(wanted, list) and isinstance(stored, list) and len(wanted) == len(stored):
        for order, (one, other) in enumerate(zip(wanted, stored, strict=True)):
            yield from _compare(one, other, f"{path}[{order}]", names, in_config=in_config)
    elif not _are_equal(wanted, stored):
        lines = tuple(_describe(stored, wanted, path, in_config=in_config))
        yield FieldChange(path, lines, wanted)


def _compare_reference(
    wanted: str, stored: Any, path: str, names: Mapping[str, str]
) -> Iterator[FieldChange]:
    stored = stored.get("id") if isinstance(stored, dict) else stored
    known = "none" if stored is None else names.get(str(stored), str(stored))
    if known != wanted:
        yield FieldChange(path, (f"{known} → {wanted}",))


def _are_equal(wanted: Any, stored: Any) -> bool:
    if any(one == _MASK for one in (wanted, stored)):
        return True
    if isinstance(wanted, str) and isinstance(stored, str) and f"//{_MASK}@" in wanted:
        return hide_credentials(wanted) == hide_credentials(stored)
    if wanted in _EMPTY and stored in _EMPTY:
        return True
    if isinstance(wanted, bool) or isinstance(stored, bool):
        return wanted is stored
    return bool(wanted == stored)


def _describe(old: Any, new: Any, path: str, *, in_config: bool) -> Iterable[str]:
    last = path.rpartition(".")[2].partition("[")[0]
    is_hidden = last in _HIDDEN_FIELDS or (in_config and last not in _OPEN_IN_CONFIG)
    if is_hidden or _has_hidden(old) or _has_hidden(new):
        return [_NOT_SHOWN]
    if isinstance(old, str) and isinstance(new, str) and ("\n" in old or "\n" in new):
        return _differing_lines(old, new)
    return [f"{_show(old)} → {_show(new)}"]


def _has_hidden(value: Any) -> bool:
    """Whether it is a list or an object in which something may be secret."""
    if isinstance(value, Mapping):
        return any(key in _HIDDEN_FIELDS or _has_hidden(one) for key, one in value.items())
    return isinstance(value, list) and any(_has_hidden(one) for one in value)


def _differing_lines(old: str, new: str) -> Sequence[str]:
    lines = list(
        difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    )[2:]  # fmt: skip
    more = len(lines) - _SHOWN_LINES
    return [*lines[:_SHOWN_LINES], *([f"… {more} more lines"] if more > 0 else [])]


def _show(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = hide_credentials(text)
    text = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
    return f'"{text}"' if isinstance(value, str) else text
