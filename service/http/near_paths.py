"""Which path may have been meant by one that is not there. Pure."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

_LEAST: Final = 0.75
"""How alike each part must be that differs: 1 is the same."""


def near_path(path: str, known: Iterable[str]) -> str | None:
    """The known path that is most like this one. None: none is.

    `known`: paths with `{names}` for parts that may be anything. A slash at the end is no part.
    """
    parts = path.rstrip("/").split("/")
    plain = [part.lower() for part in parts]
    of_length = [names for one in known if len(names := one.split("/")) == len(parts)]
    alike = ((_likeness(plain, names), _filled(parts, names)) for names in of_length)
    likeness, meant = max(alike, default=(0.0, parts))
    return "/".join(meant) if likeness >= _LEAST and "/".join(meant) != path else None


def _likeness(plain: list[str], names: list[str]) -> float:
    """Of the part that is least alike; 1 is the same path, but for capitals."""
    pairs = zip(plain, names, strict=True)
    return min(_alike(part, name.lower()) for part, name in pairs if not _is_any(name))


def _alike(part: str, name: str) -> float:
    """0 where the lengths differ too much: whoever sends a part may have made it huge."""
    matcher = SequenceMatcher(None, part, name)
    return matcher.ratio() if matcher.real_quick_ratio() >= _LEAST else 0.0


def _filled(parts: list[str], names: list[str]) -> list[str]:
    pairs = zip(parts, names, strict=True)
    return [part if _is_any(name) else name for part, name in pairs]


def _is_any(name: str) -> bool:
    return name.startswith("{")
