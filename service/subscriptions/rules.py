"""When mails are tried again, how long links hold, and what links are made of."""

import base64
from typing import Final

from service.accounts.keys import Pepper

LINK_MS: Final = 7 * 86_400_000
"""How long a link confirms a subscription; one that nobody confirms in that time is removed."""
AGAIN_MS: Final = 10 * 60_000
"""How soon an address that has not confirmed gets another link."""
LEASE_MS: Final = 5 * 60_000
"""How long a mail that is being sent is left alone. Sending takes a minute at most."""
_FIRST_WAIT_MS: Final = 30_000
_LONGEST_WAIT_MS: Final = 3_600_000
_MOST_DOUBLINGS: Final = 20
_GIVE_UP_MS: Final = 86_400_000


def find_wait_ms(*, attempts: int, waited_ms: int, chance: float) -> int | None:
    """How long to wait before a mail is tried again. None: it is given up.

    It doubles from 30 s to an hour, for a day. `chance` lies between 0 and 1 and takes up to a half
    off, so that mails which failed together do not come together again.
    """
    if waited_ms >= _GIVE_UP_MS:
        return None
    doublings = min(max(attempts - 1, 0), _MOST_DOUBLINGS)
    whole_ms = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS << doublings)
    return round(whole_ms * (1 - chance / 2))


def make_token(pepper: Pepper, subscription_id: str, salt: bytes) -> str:
    """The token of the link that confirms a subscription.

    It can be made again for a mail that is sent again, but only with the pepper.
    """
    return _spell(pepper.keyed(b"confirm " + subscription_id.encode() + b" " + salt))


def make_signature(pepper: Pepper, subscription_id: str) -> str:
    """What proves that a link to unsubscribe came from a mail of ours."""
    return _spell(pepper.keyed(b"unsubscribe " + subscription_id.encode()))


def _spell(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
