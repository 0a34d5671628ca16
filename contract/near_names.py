"""Which known name may have been meant by one that is not known. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_ALIKE: Final = 0.6
"""Of 1, which is all of it, but for capitals."""
_LEAST_LETTERS: Final = 3
"""Two letters in another order are a word of their own."""


def near_name(name: str, known: Iterable[str], *, alike: float = _ALIKE) -> str | None:
    """The known name that is most like this one. None: none is.

    `alike`: how much of both must be the same; one letter at another place is near anyway.
    """
    lowered = {one.lower(): one for one in known}
    # Likeness takes a moved letter for two that are wrong, which is too much of a short name.
    moved = [one for one in lowered if _is_one_letter_elsewhere(name.lower(), one)]
    near = moved or get_close_matches(name.lower(), lowered, n=1, cutoff=alike)
    return lowered[near[0]] if near else None


def _is_one_letter_elsewhere(name: str, known: str) -> bool:
    """What lies between the equal ends is turned by one, as where neighbours have swapped."""
    if len(name) != len(known) or len(name) < _LEAST_LETTERS or name == known:
        return False
    apart = [at for at, (one, other) in enumerate(zip(name, known, strict=True)) if one != other]
    between = slice(apart[0], apart[-1] + 1)
    ours, theirs = name[between], known[between]
    return theirs in (ours[1:] + ours[:1], ours[-1:] + ours[:-1])
