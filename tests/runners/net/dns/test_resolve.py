"""Names to addresses: hosts file, search list, servers that fail."""

import socket
from pathlib import Path

import dns.rcode
import pytest

from contract.requests import IpFamily
from contract.result import CheckFailed, Failure, FailureKind
from runners.net.dns.name_servers import (
    HostFiles,
    NameServer,
    ResolvConf,
    WatchedFile,
    parse_hosts,
    parse_resolv_conf,
)
from runners.net.dns.resolve import DnsServerResolver, Resolver, SystemResolver, resolve_literal
from tests.servers.dns import Habit, dns_server
from tests.servers.tcp import refusing_port

IPV4, IPV6 = IpFamily.IPV4, IpFamily.IPV6
ZONE = {
    ("db.test.", "A"): ("10.0.0.1", "10.0.0.2"),
    ("db.test.", "AAAA"): ("fd00::1",),
    ("alias.test.", "CNAME"): ("db.test.",),
    ("db.svc.cluster.test.", "A"): ("10.0.0.9",),
}


class Files(HostFiles):
    """Host files of our own, so that servers on free ports can be named."""

    def __init__(
        self, *ports: int, hosts: str = "", search: tuple[str, ...] = (), ndots: int = 1
    ) -> None:
        self._table = parse_hosts(hosts)
        servers = tuple(NameServer("127.0.0.1", port) for port in ports)
        self._conf = ResolvConf(servers=servers, search=search, ndots=ndots)

    def addresses(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        return self._table.get((hostname.lower().rstrip("."), family), ())

    def resolv_conf(self) -> ResolvConf:
        return self._conf


async def failure(resolver: Resolver, hostname: str, family: IpFamily = IPV4) -> Failure:
    with pytest.raises(CheckFailed) as caught:
        await resolver.resolve(hostname, family)
    assert caught.value.failure.kind is FailureKind.DNS
    return caught.value.failure


@pytest.mark.parametrize(
    ("hostname", "family", "answer"),
    [
        ("10.1.2.3", IPV4, ("10.1.2.3",)),
        ("::1", IPV6, ("::1",)),
        ("[fd00::7]", IPV6, ("fd00::7",)),
        ("fe80::1%1", IPV6, ("fe80::1%1",)),
        ("example.test", IPV4, None),
        ("10.1.2", IPV4, None),
        ("", IPV4, None),
        ("bad:name", IPV6, None),
    ],
)
def test_an_address_literal_is_its_own_answer(
    hostname: str, family: IpFamily, answer: tuple[str, ...] | None
) -> None:
    assert resolve_literal(hostname, family) == answer


@pytest.mark.parametrize(
    ("hostname", "family"), [("10.1.2.3", IPV6), ("::1", IPV4), ("fe80::1%nowhere0", IPV6)]
)
def test_a_literal_of_the_other_family_or_a_strange_scope_fails(
    hostname: str, family: IpFamily
) -> None:
    with pytest.raises(CheckFailed) as caught:
        resolve_literal(hostname, family)
    assert caught.value.failure.detail["code"] == "ERR_INVALID_IP_ADDRESS"


async def test_the_servers_are_asked_for_the_family() -> None:
    async with dns_server(ZONE) as server:
        resolver = DnsServerResolver(Files(server.port))
        assert set(await resolver.resolve("db.test", IPV4)) == {"10.0.0.1", "10.0.0.2"}
        assert await resolver.resolve("db.test", IPV6) == ("fd00::1",)


async def test_an_alias_leads_to_its_addresses() -> None:
    async with dns_server(ZONE) as server:
        resolver = DnsServerResolver(Files(server.port))
        assert set(await resolver.resolve("alias.test", IPV4)) == {"10.0.0.1", "10.0.0.2"}


async def test_the_hosts_file_wins_and_nobody_is_asked() -> None:
    hosts = "10.9.9.9\tDB.test other # the container's name\nfd00::9 db.test\n# 10.0.0.0 x\n"
    async with dns_server(ZONE) as server:
        resolver = DnsServerResolver(Files(server.port, hosts=hosts))
        assert await resolver.resolve("db.TEST", IPV4) == ("10.9.9.9",)
        assert await resolver.resolve("db.test.", IPV6) == ("fd00::9",)
        assert server.asked == []


@pytest.mark.parametrize(("family", "address"), [(IPV4, "127.0.0.1"), (IPV6, "::1")])
async def test_localhost_needs_no_server(family: IpFamily, address: str) -> None:
    resolver = DnsServerResolver(Files())
    assert await resolver.resolve("localhost", family) == (address,)
    assert await resolver.resolve("web.localhost.", family) == (address,)


async def test_the_search_list_completes_short_names() -> None:
    async with dns_server(ZONE) as server:
        files = Files(server.port, search=("none.test", "svc.cluster.test"), ndots=5)
        assert await DnsServerResolver(files).resolve("db", IPV4) == ("10.0.0.9",)
        asked = [name for name, _, _ in server.asked]
    assert asked == ["db.none.test.", "db.svc.cluster.test."]


async def test_a_final_dot_switches_the_search_list_off() -> None:
    async with dns_server(ZONE) as server:
        files = Files(server.port, search=("svc.cluster.test",), ndots=5)
        await failure(DnsServerResolver(files), "db.")
        assert [name for name, _, _ in server.asked] == ["db."]


async def test_a_search_domain_that_fails_does_not_hide_the_name() -> None:
    async with dns_server(ZONE, habit=Habit.FAILS_FAR_BELOW) as server:
        files = Files(server.port, search=("x" * 64, "broken.svc.cluster.test"), ndots=5)
        assert await DnsServerResolver(files).resolve("db.test", IPV6) == ("fd00::1",)


async def test_a_name_that_does_not_exist_says_so_and_who_said_it() -> None:
    async with dns_server(ZONE) as server:
        found = await failure(DnsServerResolver(Files(server.port)), "nowhere.test", IPV6)
        assert found.message == (
            f"nowhere.test has no IPv6 address: the name does not exist, "
            f"says 127.0.0.1:{server.port}."
        )
        assert found.detail == {
            "code": "ENOTFOUND",
            "syscall": "queryAaaa",
            "hostname": "nowhere.test",
        }


async def test_a_name_of_the_other_family_only_is_not_found() -> None:
    async with dns_server({("old.test.", "A"): ("10.0.0.1",)}) as server:
        found = await failure(DnsServerResolver(Files(server.port)), "old.test", IPV6)
    assert "no address of this family" in found.message


async def test_a_failing_server_is_followed_by_the_next() -> None:
    async with dns_server(rcode=dns.rcode.SERVFAIL) as broken, dns_server(ZONE) as good:
        with refusing_port(socket.SOCK_DGRAM) as dead:
            files = Files(dead, broken.port, good.port)
            assert await DnsServerResolver(files).resolve("db.test", IPV6) == ("fd00::1",)


async def test_when_all_servers_fail_the_last_one_is_named() -> None:
    async with dns_server(rcode=dns.rcode.REFUSED) as broken:
        found = await failure(DnsServerResolver(Files(broken.port)), "db.test")
    assert found.detail["code"] == "ESERVFAIL"
    assert f"127.0.0.1:{broken.port} answered REFUSED" in found.message


async def test_silent_servers_end_the_lookup_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.net.dns.resolve.LOOKUP_TIMEOUT_S", 0.2)
    async with dns_server(habit=Habit.SILENT) as server:
        found = await failure(DnsServerResolver(Files(server.port)), "db.test")
    assert found.message == "db.test has no IPv4 address: no DNS server answered within 0.2 s."
    assert found.detail["code"] == "ETIMEOUT"


async def test_a_name_that_is_none_is_a_dns_failure() -> None:
    for bad in ("a..b", "x" * 64 + ".test"):
        found = await failure(DnsServerResolver(Files(1)), bad)
        assert "is no DNS name" in found.message


async def test_the_system_resolves_what_the_system_knows() -> None:
    resolver = SystemResolver()
    try:
        assert await resolver.resolve("localhost", IPV4) == ("127.0.0.1",)
        assert await resolver.resolve("127.0.0.1", IPV4) == ("127.0.0.1",)
        found = await failure(resolver, "no such name")
        assert found.detail["code"] in {"ENOTFOUND", "ETIMEOUT"}
        assert "no host name" in (await failure(resolver, "x" * 64)).message
    finally:
        resolver.close()


def test_resolv_conf_is_read_as_the_system_reads_it() -> None:
    text = (
        "# made by DHCP\nnameserver 10.0.0.2 ; first\nnameserver fd00::53\nnameserver nonsense\n"
        "domain old.test\nsearch a.test. b.test .\noptions rotate ndots:5 timeout:1\n"
        "nameserver 10.0.0.3\nnameserver 10.0.0.4\n"
    )
    assert parse_resolv_conf(text) == ResolvConf(
        servers=(NameServer("10.0.0.2"), NameServer("fd00::53"), NameServer("10.0.0.3")),
        search=("a.test", "b.test"),
        ndots=5,
    )


def test_without_a_name_server_the_host_itself_is_asked() -> None:
    assert parse_resolv_conf("").servers == (NameServer("127.0.0.1"),)
    assert parse_resolv_conf("options ndots:many").ndots == 1


def test_a_name_with_enough_dots_is_tried_as_it_stands_first() -> None:
    conf = ResolvConf(search=("a.test",), ndots=2)
    assert conf.candidates("x.y") == ("x.y.a.test", "x.y")
    assert conf.candidates("x.y.z") == ("x.y.z", "x.y.z.a.test")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    hosts = WatchedFile(path, parse_hosts)
    assert hosts.read() == {}
    path.write_text("10.0.0.1 db")
    assert hosts.read() == {("db", IPV4): ("10.0.0.1",)}
    path.write_text("10.0.0.22 db")
    assert hosts.read() == {("db", IPV4): ("10.0.0.22",)}
