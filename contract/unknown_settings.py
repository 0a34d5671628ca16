"""Variables that look like settings of a program and are none. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from contract.near_names import near_name

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
        return UnknownName(name, near_name(name, misspelt))
    nearest = near_name(name, misspelt, alike=_ALMOST_THE_SAME)
    return None if nearest is None else UnknownName(name, nearest)


def _is_service_link(name: str, value: str) -> bool:
    """Kubernetes tells every container of its neighbours; one may be called as the program is."""
    return _SERVICE_LINK.search(name) is not None or value.startswith(_LINK_VALUES)
