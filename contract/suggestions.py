"""Suggests the name that was probably meant: of a field, a setting, an option."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

_ALIKE: Final = 0.6
"""Of 1, which is all of it, but for capitals."""
_LEAST_LETTERS: Final = 3
"""Two letters in another order are a word of their own."""


def suggest_name(name: str, known: Iterable[str], *, alike: float = _ALIKE) -> str | None:
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


_ALMOST_THE_SAME: Final = 0.85
"""How much of another name must be a setting's, so that a neighbour's variable is left alone."""
_SERVICE_LINK: Final = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)")
_LINK_VALUES: Final = ("tcp://", "udp://", "sctp://")


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A variable that changes nothing; its value is not kept, as it may be a secret."""

    name: str
    nearest: str | None
    """The setting that may have been meant. None: none is like it."""

    @property
    def sentence(self) -> str:
        """What to say of it."""
        mend = f"did you mean {self.nearest}?" if self.nearest else "it changes nothing"
        return f"{self.name} is no setting; {mend}"


def unknown_names(
    environ: Mapping[str, str],
    *,
    known: Collection[str],
    misspelt: Iterable[str],
    own: tuple[str, ...] = (),
) -> tuple[UnknownName, ...]:
    """The variables that are set and were probably meant to be settings, in order.

    `known`: what is read. `misspelt`: those of them that may be meant by another name. `own`: what
    begins like this is meant for the program, however far from a setting it is.
    """
    may_be_meant = tuple(misspelt)
    foreign = (
        name
        for name in sorted(environ)
        if environ[name] and name not in known and not _is_service_link(name, environ[name])
    )
    found = (_meant(name, may_be_meant, own) for name in foreign)
    return tuple(each for each in found if each is not None)


def _meant(name: str, misspelt: tuple[str, ...], own: tuple[str, ...]) -> UnknownName | None:
    """None: it is another program's."""
    if name.upper().startswith(own):
        return UnknownName(name, suggest_name(name, misspelt))
    nearest = suggest_name(name, misspelt, alike=_ALMOST_THE_SAME)
    return None if nearest is None else UnknownName(name, nearest)


def _is_service_link(name: str, value: str) -> bool:
    """Kubernetes tells every container of its neighbours; one may be called as the program is."""
    return _SERVICE_LINK.search(name) is not None or value.startswith(_LINK_VALUES)
