"""TCP checks over TLS: what is verified, what is described, and what fails."""

import asyncio
import ssl

import pytest
import trustme

from contract.assertions import Source
from contract.result import FailureKind
from runners.runner import Observation, Text
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.tcp_checks import evidence, kind, look
from tests.servers.tcp import Serve, closes, echoes_and_closes, keeps_silent, says, tcp_server


@pytest.fixture
def _reads_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer ends its answer itself; a pause is no end."""
    monkeypatch.setattr("runners.tcp.PAUSE_S", LONG_S)
    monkeypatch.setattr("runners.tcp.MAX_PAUSE_S", LONG_S)


class Pki:
    """A certificate authority and a server of its."""

    def __init__(self, *names: str) -> None:
        self.ca = trustme.CA()
        self.pem = self.ca.cert_pem.bytes().decode()
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names).configure_cert(self.server)


async def test_tls_is_verified_and_described() -> None:
    pki = Pki("localhost", "127.0.0.1")
    async with tcp_server(says(b"hi"), tls=pki.server) as port:
        seen = await look(port, tls=True, reads=True, context={"extra_ca_pem": pki.pem})
    tls = evidence(seen).tls
    assert seen.failure is None
    assert tls is not None
    assert (tls.verified, tls.version, tls.verify_error) == (True, "TLSv1.3", None)
    assert tls.cipher
    assert "127.0.0.1" in tls.chain[0].names
    assert (tls.days_to_expiry or 0) > 0
    assert seen.timings.tls is not None
    assert seen.facts[Source.RESPONSE_DATA] == Text("hi")


@pytest.mark.usefixtures("_reads_to_the_end")
async def test_data_goes_both_ways_over_tls() -> None:
    pki = Pki("127.0.0.1")
    async with tcp_server(echoes_and_closes(40_000), tls=pki.server) as port:
        seen = await look(
            port, tls=True, data="x" * 40_000, reads=True, context={"extra_ca_pem": pki.pem}
        )
    assert seen.facts[Source.RESPONSE_DATA] == Text("x" * 40_000)


async def test_an_unknown_issuer_fails_and_the_certificate_is_still_described() -> None:
    pki = Pki("127.0.0.1")
    async with tcp_server(closes, tls=pki.server) as port:
        seen = await look(port, tls=True)
    tls = evidence(seen).tls
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TLS
    assert f"The certificate of 127.0.0.1:{port} cannot be trusted" in seen.failure.message
    assert tls is not None
    assert (tls.verified, len(tls.chain)) == (False, 1)
    assert f"its issuer {tls.chain[0].issuer} is unknown" in (tls.verify_error or "")


async def test_a_failed_handshake_shows_its_version_and_time() -> None:
    pki = Pki("127.0.0.1")
    async with tcp_server(closes, tls=pki.server) as port:
        seen = await look(port, tls=True)
    tls, times = evidence(seen).tls, seen.timings
    assert tls is not None
    assert (tls.version, tls.cipher is not None) == ("TLSv1.3", True)
    assert times.tls is not None
    assert times.total is not None
    assert times.total >= (times.tcp or 0) + times.tls


@pytest.mark.parametrize("peer", [closes, says(b"220 mail ready\r\n")], ids=["silent", "plain"])
async def test_a_peer_without_tls_has_no_facts_of_tls(peer: Serve) -> None:
    async with tcp_server(peer) as port:
        seen = await look(port, tls=True)
    assert kind(seen) is FailureKind.TLS
    assert evidence(seen).tls is None
    assert seen.timings.tls is not None


async def test_a_certificate_for_another_name_fails_with_that_reason() -> None:
    pki = Pki("other.test")
    names = {"right.test": ("127.0.0.1",)}
    async with tcp_server(closes, tls=pki.server) as port:
        seen = await look(
            port,
            hostname="right.test",
            tls=True,
            context={"extra_ca_pem": pki.pem, "names": names},
        )
    assert seen.failure is not None
    assert seen.failure.message == (
        f"The certificate of right.test:{port} (127.0.0.1) cannot be trusted: "
        "it does not speak for right.test but for other.test."
    )


async def test_skip_ssl_takes_any_certificate_and_says_that_it_is_unverified() -> None:
    pki = Pki("other.test")
    async with tcp_server(closes, tls=pki.server) as port:
        seen = await look(port, tls=True, skip_ssl=True)
    tls = evidence(seen).tls
    assert seen.failure is None
    assert tls is not None
    assert (tls.verified, len(tls.chain)) == (False, 1)


async def test_skip_ssl_tells_what_is_wrong_with_the_certificate() -> None:
    pki = Pki("other.test")
    async with tcp_server(says(b"hi"), tls=pki.server) as port:
        seen = await look(port, tls=True, skip_ssl=True, reads=True)
    tls = evidence(seen).tls
    assert seen.failure is None
    assert seen.facts[Source.RESPONSE_DATA] == Text("hi")
    assert tls is not None
    assert tls.verify_error == "it does not speak for the address 127.0.0.1 but for other.test"
    assert (tls.verified, tls.version) == (False, "TLSv1.3")


async def test_a_certificate_without_fault_is_verified_with_skip_ssl_on_one_connection() -> None:
    pki, connections = Pki("127.0.0.1"), list[object]()

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await says(b"hi")(reader, writer)

    async with tcp_server(count, tls=pki.server) as port:
        seen = await look(
            port, tls=True, skip_ssl=True, reads=True, context={"extra_ca_pem": pki.pem}
        )
    tls = evidence(seen).tls
    assert tls is not None
    assert (tls.verified, tls.verify_error) == (True, None)
    assert len(connections) == 1


async def test_skip_ssl_takes_no_peer_that_does_not_speak_tls() -> None:
    async with tcp_server(says(b"220 plain text here\r\n")) as port:
        seen = await look(port, tls=True, skip_ssl=True)
    assert kind(seen) is FailureKind.TLS


async def test_a_peer_without_tls_fails_with_kind_tls() -> None:
    async with tcp_server(says(b"220 plain text here\r\n")) as port:
        seen = await look(port, tls=True)
    assert kind(seen) is FailureKind.TLS


async def test_a_peer_that_closes_in_the_handshake_fails_with_kind_tls() -> None:
    async with tcp_server(closes) as port:
        seen = await look(port, tls=True)
    assert kind(seen) is FailureKind.TLS


async def test_a_peer_that_is_silent_in_the_handshake_is_a_timeout() -> None:
    async with tcp_server(keeps_silent) as port:
        for timeout_s in GROWING_S:
            seen = await look(port, tls=True, context={"timeout_s": timeout_s})
            assert seen.failure is not None
            if seen.timings.tcp is not None:
                break
    assert seen.failure.message == (
        f"Waited {timeout_s:g} s for the TLS handshake with 127.0.0.1:{port}."
    )


async def by_every_way(port: int, pki: Pki) -> list[Observation]:
    """A check of the port alone, one that reads, and one that speaks."""
    context: dict[str, object] = {"extra_ca_pem": pki.pem}
    return [
        await look(port, tls=True, context=context),
        await look(port, tls=True, reads=True, context=context),
        await look(port, tls=True, data="hello", context=context),
    ]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_server_that_requires_a_client_certificate_fails_every_check(
    version: ssl.TLSVersion,
) -> None:
    pki = Pki("127.0.0.1")
    pki.server.minimum_version = pki.server.maximum_version = version
    pki.server.verify_mode = ssl.CERT_REQUIRED
    pki.ca.configure_trust(pki.server)
    async with tcp_server(says(b"hi"), tls=pki.server) as port:
        seen = await by_every_way(port, pki)
    assert [kind(one) for one in seen] == [FailureKind.TLS] * 3


@pytest.mark.parametrize("tickets", [0, 2])
async def test_a_server_that_takes_clients_without_a_certificate_passes(tickets: int) -> None:
    pki = Pki("127.0.0.1")
    pki.server.verify_mode = ssl.CERT_OPTIONAL
    pki.server.num_tickets = tickets
    pki.ca.configure_trust(pki.server)
    async with tcp_server(says(b"hi"), tls=pki.server) as port:
        seen = await by_every_way(port, pki)
    assert [one.failure for one in seen] == [None] * 3
