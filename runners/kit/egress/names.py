"""Host names as egress rules see them: lower case, IDNA, without the final dot."""

import re
from functools import lru_cache
from typing import Final

_NAME: Final = re.compile(
    r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
)
_EXPECTED: Final = "write a network (10.0.0.0/8), an address, a host name, *.suffix or *."


@lru_cache(maxsize=4096)
def plain_name(host: str) -> str:
    """The one spelling under which a name is compared."""
    name = host.strip().rstrip(".").lower()
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name


def covers(rule: str, name: str) -> bool:
    """Whether the rule speaks of the name."""
    if rule.startswith("*."):
        return len(name) >= len(rule) and name.endswith(rule[1:])
    return rule in ("*", name)


def read_name_rule(rule: str) -> str | None:
    """The rule as a name; None: it is to be read as a network.

    Raises:
        ValueError: it is neither, with a sentence.
    """
    if rule == "*":
        return rule
    name = plain_name(rule)
    last = name.rpartition(".")[2]
    if ":" in rule or "/" in rule or last.isdigit():
        return None
    if not _NAME.fullmatch(name) or any(len(label) > 63 for label in name.split(".")):
        raise ValueError(_EXPECTED)
    return name
