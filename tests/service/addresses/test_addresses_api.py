from dataclasses import replace
from pathlib import Path

import pytest

from service.addresses.model import parse_addresses
from tests.servers.public_api import ApiUser, PublicApi, serve_public_api

TOLD = "eu-west-1=203.0.113.7 eu-west-1=2001:db8::/56, cellar=198.51.100.0/29 cellar=203.0.113.7"


async def told(api: PublicApi) -> ApiUser:
    """Somebody without a key, at a service whose operator told its addresses."""
    api.app.state.backend = replace(api.backend, addresses=parse_addresses(TOLD))
    return ApiUser(api.url, api.http, api.alice.secrets, {"authorization": "Bearer nothing"})


async def test_addresses_are_listed_once_by_version(api: PublicApi) -> None:
    anyone = await told(api)
    assert (await anyone.get("/v1/static-ips")).body == ["203.0.113.7", "198.51.100.0/29"]
    assert (await anyone.get("/v1/static-ipv6s")).body == ["2001:db8::/56"]


async def test_an_address_of_ipv6_is_a_network_of_one(api: PublicApi) -> None:
    addresses = parse_addresses("cellar=2001:db8::7 cellar=203.0.113.7")
    api.app.state.backend = replace(api.backend, addresses=addresses)
    assert (await api.alice.get("/v1/static-ipv6s")).body == ["2001:db8::7/128"]
    assert (await api.alice.get("/v1/static-ipv6s.txt")).body == "2001:db8::7/128\n"
    assert (await api.alice.get("/v1/static-ips")).body == ["203.0.113.7"]


async def test_addresses_are_listed_by_location(api: PublicApi) -> None:
    anyone = await told(api)
    assert (await anyone.get("/v1/static-ips-by-region")).body == {
        "eu-west-1": ["203.0.113.7"],
        "cellar": ["198.51.100.0/29", "203.0.113.7"],
    }
    by_region = (await anyone.get("/v1/static-ipv6s-by-region")).body
    assert by_region == {"eu-west-1": ["2001:db8::/56"]}


async def test_addresses_are_plain_text_for_shell_scripts(api: PublicApi) -> None:
    anyone = await told(api)
    answer = await anyone.get("/v1/static-ips.txt")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.body == "203.0.113.7\n198.51.100.0/29\n"
    assert (await anyone.get("/v1/static-ipv6s.txt")).body == "2001:db8::/56\n"


async def test_without_the_setting_there_are_none(alice: ApiUser) -> None:
    assert (await alice.get("/v1/static-ips")).body == []
    assert (await alice.get("/v1/static-ips-by-region")).body == {}
    assert (await alice.get("/v1/static-ipv6s.txt")).body == ""


async def test_too_many_requests_are_answered_as_the_specification_says(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path, per_minute=3) as api:
        answers = [await api.alice.get("/v1/static-ipv6s.txt") for _ in range(4)]
    assert [one.status for one in answers] == [200, 200, 200, 429]
    body = answers[-1].body
    assert (body["statusCode"], body["error"]) == (429, "Too Many Requests")
    assert answers[-1].headers["retry-after"] == "20"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("192.0.2.7", "has 192.0.2.7; write a location, = and an address"),
        ("=192.0.2.7", "write a location"),
        ("cellar=somewhere", "has cellar=somewhere, which is not an address or network"),
        ("cellar=192.0.2.7/24", "has host bits set"),
    ],
)
def test_a_wrong_setting_is_told_with_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_addresses(text)
