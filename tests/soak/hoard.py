"""The secrets of a soak: one of each source that an agent has secrets from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final
from urllib.parse import quote

from tests.builders.certificates import encrypted

_LETTERS: Final = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_VISIBLE: Final = "-_.!*()/+=%:&<>'"
"""Signs that may stand in a header as they are."""
_FURTHER: Final = _VISIBLE + '"\\ éß€漢'
_HALF_CHARS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Hoard:
    """Values that must never leave an agent as they are."""

    of_environment: str
    """`SERVICE_SECRET_SOAK` of the agents."""
    of_agents_proxy: str
    """The password in their `HTTPS_PROXY`."""
    of_locations_proxy: str
    """The password of the proxy that checks go through."""
    secret_variable: str
    locked_variable: str
    basic_auth: str
    authorization: str
    """The token of a header by that name."""
    cookie: str
    locked_header: str
    locked_parameter: str
    client_key: str
    """PEM, as it comes with a client certificate."""
    passphrase: str
    """Of that key."""

    def by_name(self) -> Mapping[str, str]:
        """All of them."""
        return {name: getattr(self, name) for name in Hoard.__dataclass_fields__}

    def of_agents(self) -> Mapping[str, str]:
        """What an agent is started with."""
        return {
            "SERVICE_SECRET_SOAK": self.of_environment,
            "HTTPS_PROXY": f"http://soak:{quote(self.of_agents_proxy, safe='')}@127.0.0.1:9",
        }

    def variables(self) -> list[dict[str, Any]]:
        """What the service gives to each check."""
        return [
            {"key": "TOKEN", "value": self.secret_variable, "secret": True},
            {"key": "LOCKED", "value": self.locked_variable, "locked": True},
        ]

    def told_at(self) -> Mapping[str, tuple[str, ...]]:
        """What a site may tell those who ask for a path: what the check there knows as secret."""
        everywhere = (
            *(self.of_environment, self.of_agents_proxy, self.of_locations_proxy),
            *(self.secret_variable, self.locked_variable, self.client_key, self.passphrase),
        )
        return {
            "/leaving": (*everywhere, self.authorization, self.cookie),
            "/told": (*everywhere, self.basic_auth, self.locked_header, self.locked_parameter),
        }

    def requests(self, site: str) -> list[dict[str, Any]]:
        """What API checks ask of a site, with every secret that a request can hold."""
        token = {"key": "Authorization", "value": f"Bearer {self.authorization}"}
        cookie = {"key": "Cookie", "value": f"session={self.cookie}"}
        locked = {"key": "X-Tenant", "value": self.locked_header, "locked": True}
        parameter = {"key": "account", "value": self.locked_parameter, "locked": True}
        # A check gets those variables that it uses.
        used = {"key": "used", "value": "{{TOKEN}} {{LOCKED}}"}
        return [
            {
                "method": "GET",
                "url": f"{site}/leaving",
                "headers": [token, cookie],
                "queryParameters": [used],
            },
            {
                "method": "POST",
                "url": f"{site}/told",
                "headers": [locked],
                "queryParameters": [parameter],
                "basicAuth": {"username": "soak", "password": self.basic_auth},
                "bodyType": "RAW",
                "body": "a {{TOKEN}} b {{LOCKED}} c {{{TOKEN}}} d",
            },
        ]


def hoard_of(seed: object, *, client_key: str) -> Hoard:
    """The secrets of a seed: none of them, and no half of one, comes about by chance.

    `client_key`: in PEM, without a passphrase as yet.
    """
    dice = Random(f"{seed} hoard")
    values = {name: _value(dice, _FURTHER) for name in Hoard.__dataclass_fields__}
    in_headers = ("authorization", "cookie", "locked_header", "of_locations_proxy")
    values |= {name: _value(dice, _VISIBLE) for name in in_headers}
    hoard = Hoard(**{**values, "client_key": ""})
    return replace(hoard, client_key=encrypted(client_key, hoard.passphrase))


def _value(dice: Random, signs: str) -> str:
    halves = ("".join(dice.choices(_LETTERS, k=_HALF_CHARS)) for _ in range(2))
    return "".join(dice.sample(signs, 4)).strip().join(halves)
