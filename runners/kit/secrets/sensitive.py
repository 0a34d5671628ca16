"""What is hidden without being asked, and what is shown in its place."""

from typing import Final

HIDDEN: Final = "*********"
"""Stands where a secret was."""

SENSITIVE_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}
)
"""Headers whose values are never shown, by lower-case name."""
