"""All check types of the API."""

from functools import reduce
from operator import or_
from types import GenericAlias, MappingProxyType
from typing import Any, Final

from service.checks.types.agentic import AGENTIC
from service.checks.types.api import API
from service.checks.types.browser import BROWSER
from service.checks.types.definition import TypeDefinition
from service.checks.types.dns import DNS
from service.checks.types.heartbeat import HEARTBEAT
from service.checks.types.icmp import ICMP
from service.checks.types.multi_step import MULTI_STEP
from service.checks.types.playwright import PLAYWRIGHT
from service.checks.types.tcp import TCP
from service.checks.types.url import URL

DEFINITIONS: Final[tuple[TypeDefinition, ...]] = (
    API,
    URL,
    TCP,
    DNS,
    ICMP,
    HEARTBEAT,
    BROWSER,
    MULTI_STEP,
    PLAYWRIGHT,
    AGENTIC,
)
"""Adding a check type adds a line here."""

TYPES: Final = MappingProxyType({one.kind: one for one in DEFINITIONS})

ANY_TYPED: Final[Any] = reduce(or_, (one.typed for one in DEFINITIONS))
"""The body of the paths that take a check of any type."""
ANY_CHECK: Final[Any] = reduce(or_, (one.response for one in DEFINITIONS))
"""A check in the OpenAPI document; `views.shown` makes the values, which were validated before."""
ANY_CHECKS: Final[Any] = GenericAlias(list, (ANY_CHECK,))
"""A list of them."""
