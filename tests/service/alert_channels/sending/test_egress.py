import socket

import pytest

from service.alert_channels.sending.egress import EgressError, EgressRule, parse_networks
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.http_client import HttpClient, HttpRequest
from tests.builders.outgoing import LOOPBACK
from tests.servers.receiver import serve_receiver


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("169.254.169.254", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "multicast"),
    ],
)
def test_the_machine_and_its_link_are_not_reached_in_any_spelling(address: str, kind: str) -> None:
    with pytest.raises(EgressError, match=kind):
        EgressRule().check(address)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "192.168.1.1", "fd00::1", "198.51.100.7", "2001:db8::1"]
)
def test_private_and_public_networks_are_reached(address: str) -> None:
    EgressRule().check(address)


def test_a_setting_allows_what_is_local() -> None:
    rule = EgressRule(parse_networks("127.0.0.0/8, 169.254.7.1"))
    rule.check("127.0.0.1")
    rule.check("::ffff:169.254.7.1")
    with pytest.raises(EgressError):
        rule.check("169.254.169.254")
    with pytest.raises(ValueError, match="has cellar; use networks"):
        parse_networks("cellar")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refused_address_gets_no_connection_however_it_is_named(host: str) -> None:
    async with serve_receiver() as receiver:
        port = receiver.url.rpartition(":")[2]
        with pytest.raises(ChannelError) as caught:
            await HttpClient(EgressRule()).send(HttpRequest(url=f"http://{host}:{port}/s3cr3t"))
    assert receiver.got == []
    assert "ALERT_EGRESS_ALLOW" in caught.value.message
    assert caught.value.fault is Fault.FINAL


async def test_each_address_of_a_name_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may lead anywhere: what counts is the address at the moment of connecting."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(ChannelError, match=r"169\.254\.169\.254 is a link-local"):
        await HttpClient(LOOPBACK).send(HttpRequest(url="http://metadata.test/"))


async def test_redirects_are_not_followed() -> None:
    async with serve_receiver() as receiver:
        receiver.answers.append(302)
        receiver.headers["location"] = "http://169.254.169.254/"
        answer = await HttpClient(LOOPBACK).send(HttpRequest(url=receiver.url))
        assert answer.status == 302
        with pytest.raises(ChannelError, match="redirects are not followed"):
            answer.raise_for_status({})
    assert len(receiver.got) == 1


async def test_no_problem_of_a_connection_repeats_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = []
    for url in (
        f"http://127.0.0.1:{port}/s3cr3t",
        "http://nowhere.invalid/s3cr3t",
        "ftp://s3cr3t.test",
        "s3cr3t",
        "http://[s3cr3t",
        "http://2130706433/s3cr3t",
    ):
        with pytest.raises(ChannelError) as caught:
            await HttpClient(LOOPBACK).send(HttpRequest(url=url))
        said.append(caught.value.message)
    assert not [one for one in said if "s3cr3t" in one or str(port) in one]


async def test_a_header_that_no_request_can_carry_is_given_up() -> None:
    async with serve_receiver() as receiver:
        request = HttpRequest(url=receiver.url, headers={"x-a": "b\r\nx-c: s3cr3t"})
        with pytest.raises(ChannelError) as caught:
            await HttpClient(LOOPBACK).send(request)
    assert caught.value.fault is Fault.FINAL
    assert "s3cr3t" not in caught.value.message
