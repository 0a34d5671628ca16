import pytest
from starlette.requests import HTTPConnection

from service.http.rate_limits.rate_limit import address_of, place_of


def a_request(host: str | None) -> HTTPConnection:
    return HTTPConnection({"type": "http", "client": (host, 1) if host is not None else None})


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("unix", "unix"),
        (None, ""),
    ],
)
def test_a_place_is_an_address_or_the_network_that_one_customer_has(
    host: str | None, place: str
) -> None:
    assert place_of(a_request(host)) == place


def test_an_address_that_somebody_made_up_is_kept_short() -> None:
    assert len(address_of(a_request("x" * 9000)) or "") == 100
