"""Where a check runs: private locations, and regions that they stand in for. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from contract.checks import CheckType
from contract.sent_values import told
from service.http.errors import InvalidError

PLACES: Final = ("privateLocations", "locations")
NOWHERE = "You have to set at least one `location` or `privateLocation`"


def places(ids: Mapping[str, str], doc: Mapping[str, Any], kind: CheckType) -> list[str]:
    """The ids of the locations at which the check runs, in its own order.

    `ids`: those of the account, by slug, oldest first.

    Raises:
        InvalidError: it names a location that is not there, or none.
    """
    hold_known(doc, list(ids))
    wanted = [*doc["privateLocations"], *doc["locations"]]
    found = [ids[slug] for slug in dict.fromkeys(wanted)]
    if not found and kind is CheckType.HEARTBEAT:
        # Nothing is looked at from there: somebody has to say that the ping did not come.
        found = list(ids.values())[:1]
    if not found:
        raise InvalidError(NOWHERE, keys=("locations", "privateLocations"))
    return found


def hold_known(doc: Mapping[str, Any], slugs: Sequence[str]) -> None:
    """Refuse a location of a check or a group that is none of these.

    Raises:
        InvalidError: it names one.
    """
    have = f"there are {', '.join(slugs)}" if slugs else "there are none yet"
    for order, slug in enumerate(doc["privateLocations"]):
        if slug not in slugs:
            raise InvalidError(
                f'"privateLocations[{order}]" is {told(slug)}, and there is no private location of'
                f" this slug; {have}.",
                keys=(f"privateLocations[{order}]",),
            )
    for order, region in enumerate(doc["locations"]):
        if region not in slugs:
            raise InvalidError(
                f'"locations[{order}]" is {region}, and nothing runs there: this installation'
                f" serves a region only through a private location with its name; {have}.",
                keys=(f"locations[{order}]",),
            )
