"""Where a check runs: private locations, and regions that private locations stand in for."""

from sqlalchemy import Connection

from service.checks.bodies import AnyCheckWrite, HeartbeatCheckWrite
from service.http.errors import InvalidError
from service.locations import actions as locations

NOWHERE = "You have to set at least one `location` or `privateLocation`"


def places(connection: Connection, account_id: str, check: AnyCheckWrite) -> list[str]:
    """The ids of the locations at which the check runs, in its own order.

    Raises:
        InvalidError: it names a location that is not there, or none.
    """
    ids = locations.ids_by_slug(connection, account_id)
    _refuse_unknown(check, list(ids))
    wanted = [*(check.private_locations or ()), *(check.locations or ())]
    found = [ids[slug] for slug in dict.fromkeys(wanted)]
    if not found and isinstance(check, HeartbeatCheckWrite):
        # Nothing is looked at from there: somebody has to say that the ping did not come.
        found = list(ids.values())[:1]
    if not found:
        raise InvalidError(NOWHERE, keys=("locations", "privateLocations"))
    return found


def _refuse_unknown(check: AnyCheckWrite, slugs: list[str]) -> None:
    have = f"there are {', '.join(slugs)}" if slugs else "there are none yet"
    for order, slug in enumerate(check.private_locations or ()):
        if slug not in slugs:
            raise InvalidError(
                f'"privateLocations[{order}]" names a private location that does not exist;'
                f" {have}.",
                keys=(f"privateLocations[{order}]",),
            )
    for order, region in enumerate(check.locations or ()):
        if region not in slugs:
            raise InvalidError(
                f'"locations[{order}]" is {region}, and nothing runs there: this installation'
                f" serves a region only through a private location with its name; {have}.",
                keys=(f"locations[{order}]",),
            )
