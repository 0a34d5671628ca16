"""Variables that look like settings and are none: misspelt, or of another program. Pure."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.settings_table import REQUIRED, SETTINGS

_OWN_PREFIXES: Final = ("AGENT_", "EGRESS_", "SPOOL_")
"""What begins like this is meant for the agent, however far from a setting it is."""
_ALMOST_THE_SAME: Final = 0.85
"""How much of another name must be a setting's, so that a neighbour's variable is left alone."""
_SOMEWHAT_ALIKE: Final = 0.6
_MISSPELLED: Final = tuple(
    setting.name for setting in SETTINGS if setting.default != REQUIRED and not setting.any_case
)
"""What is required is missed at once, and programs have all kinds of keys and proxies."""
_KNOWN: Final = {setting.name for setting in SETTINGS} | {
    f"{setting.name}_FILE" for setting in SETTINGS if setting.secret
}
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


def unknown_names(environ: Mapping[str, str]) -> tuple[UnknownName, ...]:
    """The variables that are set and were probably meant to be settings, in order."""
    foreign = (
        name
        for name in sorted(environ)
        if environ[name] and name not in _KNOWN and not _is_service_link(name, environ[name])
    )
    found = (_meant(name) for name in foreign)
    return tuple(each for each in found if each is not None)


def _meant(name: str) -> UnknownName | None:
    """None: it is another program's."""
    upper = name.upper()
    if upper.startswith(_OWN_PREFIXES):
        return UnknownName(name, _nearest(upper, _SOMEWHAT_ALIKE))
    nearest = _nearest(upper, _ALMOST_THE_SAME)
    return None if nearest is None else UnknownName(name, nearest)


def _nearest(name: str, cutoff: float) -> str | None:
    found = difflib.get_close_matches(name, _MISSPELLED, n=1, cutoff=cutoff)
    return found[0] if found else None


def _is_service_link(name: str, value: str) -> bool:
    """Kubernetes tells every container of its neighbours; one of them may be called `agent`."""
    return _SERVICE_LINK.search(name) is not None or value.startswith(_LINK_VALUES)
