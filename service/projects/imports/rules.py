"""What is taken over, what it is called in code, and what its code says."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from service.projects import rules
from service.projects.imports.model import Candidate, Filter, Planned

_MOST_LETTERS: Final = 60
_NO_CODE: Final = "PLAYWRIGHT"
"""Suites are folders, which the command line has no code for."""
_ONE_RETRY: Final = {"type": "SINGLE_RETRY", "baseBackoffSeconds": 1, "sameRegion": False}
"""What `doubleCheck` comes to: code has no word for it, nor for a retry without a pause."""
_EMPTY_ASSERTION: Final = {"property": "", "target": "", "regex": ""}
_SNIPPETS: Final = ("setupSnippetId", "tearDownSnippetId")


def choose(candidates: Iterable[Candidate], filters: Sequence[Filter]) -> tuple[Candidate, ...]:
    """What the filters let through; without any, everything."""
    return tuple(one for one in candidates if _is_included(one, filters))


def _is_included(one: Candidate, filters: Sequence[Filter]) -> bool:
    matching = (wish for wish in reversed(filters) if wish.matches(one.type, one.physical_id))
    return next((wish.includes for wish in matching), True)


def name_all(candidates: Iterable[Candidate], taken: Collection[str]) -> tuple[Planned, ...]:
    """Give each thing a name in code that nothing else in the project has."""
    used = set(taken)
    planned = []
    for one in candidates:
        plain = _slug(one.name) or one.type
        name, number = plain, 1
        while name in used:
            number += 1
            name = f"{plain}-{number}"
        used.add(name)
        planned.append(Planned(type=one.type, logical_id=name, physical_id=one.physical_id))
    return tuple(planned)


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_MOST_LETTERS].strip("-")


def has_code(kind: str, view: Mapping[str, Any]) -> bool:
    """Whether the command line can write code for a thing."""
    if kind == rules.CHECK:
        return view["checkType"] != _NO_CODE and not view.get("dependencies")
    if kind == rules.GROUP:
        return not any(view.get(field) for field in _SNIPPETS)
    return True


def build_payload(kind: str, physical_id: str | int, view: Mapping[str, Any]) -> dict[str, Any]:
    """What the command line makes code of: the thing as its API takes it, with its own id.

    Fields without a value are left out, as code leaves them out.
    """
    whole = {"id": physical_id, **view}
    if kind == rules.CHECK:
        if whole.get("useGlobalAlertSettings"):
            del whole["alertSettings"]
        if whole.get("doubleCheck") and whole.get("retryStrategy") is None:
            whole["retryStrategy"] = _ONE_RETRY
    if kind == rules.PAGE:
        whole["cards"] = [
            {**card, "services": [{"id": one} for one in card["services"]]}
            for card in whole["cards"]
        ]
    return {name: _without_nothing(value) for name, value in whole.items() if value is not None}


def _without_nothing(value: Any) -> Any:
    """Fields without a value are left out, except in assertions, whose texts are never left out."""
    if isinstance(value, Mapping):
        plain = _EMPTY_ASSERTION if "comparison" in value else {}
        kept = {name: _without_nothing(one) for name, one in value.items() if one is not None}
        return {**plain, **kept}
    if isinstance(value, list | tuple):
        return [_without_nothing(one) for one in value]
    return value


def name_link(kind: str, owner: Planned, other: str) -> str:
    """What the command line calls what joins a check or a group with something else."""
    if kind == rules.SUBSCRIPTION:
        return f"{owner.type}-{kind}#{owner.logical_id}#{other}"
    return f"{kind}#{owner.logical_id}#{other}"


def name_by_id(kind: str, physical_id: str) -> str:
    """What the command line calls a thing that is there without the project."""
    return f"{kind}-{physical_id}"
