"""How much work it will be to judge what was seen. Pure."""

from collections.abc import Mapping
from typing import Final

from contract.assertions import Assertion, Source
from contract.checks import CheckSpec
from runners.kit.observation import Fact, JsonText, Number, Text

HEAVY_CHARS: Final = 1_000_000
"""Text that takes longer to go through than the event loop should stand still (some 10 ms)."""
FANS_OUT: Final = 16
"""A path that goes over everything costs so much more than parsing, for each time that it does."""
_FANNING: Final = ("..", "*", "?")


def is_heavy(spec: CheckSpec, facts: Mapping[Source, Fact]) -> bool:
    """Whether judging would hold up the event loop."""
    assertions: tuple[Assertion, ...] = getattr(spec, "assertions", ())
    for one in assertions:  # a loop, because a generator costs every run 0.5 %
        fact = facts.get(one.source)
        if type(fact) is not Number and _weight(one, fact) >= HEAVY_CHARS:
            return True
    return False


def _weight(assertion: Assertion, fact: Fact | None) -> int:
    if isinstance(fact, Text):
        return len(fact.value)
    if isinstance(fact, JsonText):
        times = sum(assertion.property.count(sign) for sign in _FANNING)
        return len(fact.text) * int(FANS_OUT**times)
    return 0
