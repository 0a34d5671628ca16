"""Texts that no answer shows, not even a refusal of what was sent in their place."""

import re
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BeforeValidator

from service.http.schema import field_error

HIDDEN: Final = "*********"
"""Shown in the place of a stored text, as results have it; sent back, it keeps that text."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where addresses hold a user and a password."""

    pattern: re.Pattern[str]
    """What stands before them, and they."""

    def hide(self, address: str) -> str:
        """The address as it is shown to those who only read."""
        return self.pattern.sub(lambda found: f"{found[1] or ''}{HIDDEN}@", address)

    def are_hidden(self, address: str) -> bool:
        """Whether it is sent back as it was shown."""
        found = self.pattern.match(address)
        return found is not None and found[2] == HIDDEN

    def restore(self, stored: str, address: str) -> str | None:
        """The address with those of the stored one. None: that has none."""
        found = self.pattern.match(stored)
        if found is None:
            return None
        return self.pattern.sub(lambda place: f"{place[1] or ''}{found[2]}@", address)


URL_CREDENTIALS: Final = Credentials(re.compile(r"^([^/?#]*//)([^/?#]*)@"))
PROXY_CREDENTIALS: Final = Credentials(re.compile(r"^([^/?#]*//)?(.*)@", re.DOTALL))
"""Credentials of a proxy: they end at the last @, since a password may hold any character."""


def _require_text(value: Any) -> Any:
    """Other refusals tell a number; here it may be a PIN."""
    if isinstance(value, str):
        return value
    raise field_error("", "must be a string")


NotEchoed: Final = BeforeValidator(_require_text)
"""Goes last in an Annotated, or the schema loses its limits."""
