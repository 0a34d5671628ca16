"""Variables that look like the agent's settings and are none: misspelt, or of another program."""

from collections.abc import Mapping
from typing import Final

from agent.settings_table import REQUIRED, SETTINGS
from contract import unknown_settings
from contract.unknown_settings import UnknownName

_OWN_PREFIXES: Final = ("AGENT_", "EGRESS_", "SPOOL_")
_MISSPELLED: Final = tuple(
    setting.name for setting in SETTINGS if setting.default != REQUIRED and not setting.any_case
)
"""What is required is missed at once, and programs have all kinds of keys and proxies."""
_KNOWN: Final = {setting.name for setting in SETTINGS} | {
    f"{setting.name}_FILE" for setting in SETTINGS if setting.secret
}


def unknown_names(environ: Mapping[str, str]) -> tuple[UnknownName, ...]:
    """The variables that are set and were probably meant to be settings, in order."""
    return unknown_settings.unknown_names(
        environ, known=_KNOWN, misspelt=_MISSPELLED, own=_OWN_PREFIXES
    )
