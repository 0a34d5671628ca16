"""Which path may have been meant by one that is not there. Pure."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

_LEAST: Final = 0.75
"""How alike each part must be that differs: 1 is the same."""


def near_path(path: str, known: Iterable[str]) -> str | None:
    """The known path that is most like this one. None: none is.

    `known`: paths with `{names}` for parts that may be anything.
    """
    parts = path.split("/")
    of_length = (one.split("/") for one in known if one.count("/") == path.count("/"))
    alike = [
        (_likeness(parts, meant), meant) for one in of_length if (meant := _filled(parts, one))
    ]
    likeness, meant = max(alike, default=(0.0, parts))
    return "/".join(meant) if likeness >= _LEAST and meant != parts else None


def _likeness(parts: list[str], meant: list[str]) -> float:
    """Of the part that is least alike; 1 is the same path, but for capitals."""
    pairs = zip(parts, meant, strict=True)
    return min(SequenceMatcher(None, one.lower(), other.lower()).ratio() for one, other in pairs)


def _filled(parts: list[str], known: list[str]) -> list[str]:
    pairs = zip(parts, known, strict=True)
    return [given if name.startswith("{") else name for given, name in pairs]
