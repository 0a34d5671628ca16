"""Suggests the name of a field, setting or option that was probably meant."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

_ALIKE: Final = 0.6
"""The least similarity of two names, from 0 to 1 (equal but for case)."""
_LEAST_LETTERS: Final = 3
"""The shortest name that is searched for moved letters; two swapped letters are another word."""


def suggest_name(name: str, known: Iterable[str], *, alike: float = _ALIKE) -> str | None:
    """Return the most similar known name. None: none is similar.

    `alike`: the least similarity, from 0 to 1; a name with one moved letter always counts.
    """
    lowered = {one.lower(): one for one in known}
    # Similarity counts a moved letter as two wrong ones, which is too many in a short name.
    moved = [one for one in lowered if _is_one_letter_elsewhere(name.lower(), one)]
    near = moved or get_close_matches(name.lower(), lowered, n=1, cutoff=alike)
    return lowered[near[0]] if near else None


def _is_one_letter_elsewhere(name: str, known: str) -> bool:
    """Whether one letter has moved: the part between the equal ends is rotated by one."""
    if len(name) != len(known) or len(name) < _LEAST_LETTERS or name == known:
        return False
    apart = [at for at, (one, other) in enumerate(zip(name, known, strict=True)) if one != other]
    between = slice(apart[0], apart[-1] + 1)
    ours, theirs = name[between], known[between]
    return theirs in (ours[1:] + ours[:1], ours[-1:] + ours[:-1])


_ALMOST_THE_SAME: Final = 0.85
"""The least similarity of a variable without our prefix; other programs' variables stay below."""
_TWIN: Final = "_FILE"
_NEARLY_A_TWIN: Final = 0.9
_NEARLY_FILE: Final = 0.8
"""One letter more or less; `PROFILE` and `TILE` are other words."""
_SERVICE_LINK: Final = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)")
_LINK_VALUES: Final = ("tcp://", "udp://", "sctp://")


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A variable without effect; its value is not kept, because it may be a secret."""

    name: str
    nearest: str | None
    """The setting that was probably meant. None: none is similar."""

    @property
    def sentence(self) -> str:
        """The sentence that reports it."""
        fix = f"did you mean {self.nearest}?" if self.nearest else "it has no effect"
        return f"{self.name} is not a setting; {fix}"


def unknown_names(
    environ: Mapping[str, str],
    *,
    known: Collection[str],
    misspelt: Iterable[str],
    own: tuple[str, ...] = (),
) -> tuple[UnknownName, ...]:
    """Return the variables that were probably meant to be settings, sorted by name.

    `known`: the names that are read. `misspelt`: the names that may be suggested. `own`: prefixes
    of the program; a variable with one of them is reported even if no setting is similar.
    A known name that ends in `_FILE` is the twin of a setting: it names a file with its value.
    """
    may_be_meant = tuple(misspelt)
    missing = {
        name
        for name in known
        if name.endswith(_TWIN) and not environ.get(name) and not environ.get(name[: -len(_TWIN)])
    }
    foreign = (
        name
        for name in sorted(environ)
        if environ[name] and name not in known and not _is_service_link(name, environ[name])
    )
    found = (
        _meant_twin(name, {*known, *may_be_meant}, missing) or _meant(name, may_be_meant, own)
        for name in foreign
    )
    return tuple(each for each in found if each is not None)


def _meant(name: str, misspelt: tuple[str, ...], own: tuple[str, ...]) -> UnknownName | None:
    """Return the variable as unknown. None: it belongs to another program."""
    if name.upper().startswith(own):
        return UnknownName(name, suggest_name(name, misspelt))
    nearest = suggest_name(name, misspelt, alike=_ALMOST_THE_SAME)
    return None if nearest is None else UnknownName(name, nearest)


def _meant_twin(name: str, known: Collection[str], missing: Iterable[str]) -> UnknownName | None:
    """Return the variable as a twin that nobody reads. None: it looks like none.

    `missing`: the twins of settings that are not set in either way; others are not searched for
    names like the variable's, as programs have all kinds of keys in files.
    """
    setting, _, ending = name.rpartition("_")
    if setting in known and is_almost_file(ending):
        twin = f"{setting}{_TWIN}"
        return UnknownName(name, twin if twin in known else setting)
    nearest = suggest_name(name, missing, alike=_NEARLY_A_TWIN)
    return None if nearest is None else UnknownName(name, nearest)


def is_almost_file(ending: str) -> bool:
    """Whether the last word of a name is `FILE`, or was meant to be."""
    return suggest_name(ending, ("FILE",), alike=_NEARLY_FILE) is not None


def _is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes set it: it announces services to all containers, one may have our name."""
    return _SERVICE_LINK.search(name) is not None or value.startswith(_LINK_VALUES)
