"""Texts that no answer shows, not even a refusal of what was sent in their place."""

import re
from typing import Any, Final

from pydantic import BeforeValidator

from service.http.strict import field_error

_CREDENTIALS: Final = re.compile(r"^([^/?#]*//)[^/?#]*@")
"""The user and the password of an address, behind its scheme."""


_OF_PROXY: Final = re.compile(r"^([^/?#]*//)?.*@", re.DOTALL)
"""The same of a proxy, of which nothing else may have an @: its password may hold any sign."""


def proxy_without_credentials(address: str) -> str:
    """A proxy's address as it is shown to those who only read."""
    return _OF_PROXY.sub(lambda found: found[1] or "", address)


def without_credentials(address: str) -> str:
    """The address as it is shown to those who only read."""
    return _CREDENTIALS.sub(r"\1", address)


def _is_text(value: Any) -> Any:
    """Other refusals tell a number; here it may be a PIN."""
    if isinstance(value, str):
        return value
    raise field_error("", "must be a string")


Untold: Final = BeforeValidator(_is_text)
"""Goes last in an Annotated, or the schema loses its limits."""
