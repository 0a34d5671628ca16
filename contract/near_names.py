"""Which known name may have been meant by one that is not known. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_ALIKE: Final = 0.6
"""Of 1, which is all of it, but for capitals."""


def near_name(name: str, known: Iterable[str], *, alike: float = _ALIKE) -> str | None:
    """The known name that is most like this one. None: none is.

    `alike`: how much of both must be the same.
    """
    lowered = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), lowered, n=1, cutoff=alike)
    return lowered[near[0]] if near else None
