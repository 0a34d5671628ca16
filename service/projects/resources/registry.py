"""All types of resources."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.projects import rules
from service.projects.model import Resource
from service.projects.resources.channel_resources import CHANNELS, SUBSCRIPTIONS
from service.projects.resources.check_resources import CHECKS
from service.projects.resources.group_resources import GROUPS
from service.projects.resources.location_resources import LOCATIONS
from service.projects.resources.page_resources import PAGES, PARTS, SERVICES
from service.projects.resources.resource_type import ResourceType
from service.projects.resources.window_resources import WINDOWS

TYPES: Final[Mapping[str, ResourceType]] = MappingProxyType(
    {
        rules.LOCATION: LOCATIONS,
        rules.SERVICE: SERVICES,
        rules.COMPONENT: SERVICES,
        rules.PAGE: PAGES,
        rules.GROUP: GROUPS,
        rules.CHECK: CHECKS,
        rules.CHANNEL: CHANNELS,
        rules.SUBSCRIPTION: SUBSCRIPTIONS,
        rules.WINDOW: WINDOWS,
        rules.RULE: PARTS,
        rules.CHECK_ASSIGNMENT: PARTS,
        rules.GROUP_ASSIGNMENT: PARTS,
    }
)
"""Adding a type adds a line here, and its place in `rules.ORDER`."""


def type_of(resource: Resource) -> ResourceType:
    """How a resource of a deployment's body is made."""
    return PARTS if rules.is_card(resource) else TYPES[resource.type]
