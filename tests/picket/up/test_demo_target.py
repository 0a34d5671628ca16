import asyncio
import ssl
import stat
from pathlib import Path

import aiohttp
import dns.asyncquery
import dns.message
import dns.rcode
import pytest

from picket.up.demo_target import FLAKY_EVERY, HOST, DemoPorts, demo_target, ping_forever
from tests.builders.patience import LONG_S, OFTEN


async def test_the_target_answers_on_every_port(tmp_path: Path) -> None:
    async with demo_target(tmp_path, DemoPorts()) as target, aiohttp.ClientSession() as session:
        ports = target.ports
        shop = f"http://{HOST}:{ports.http}"
        statuses = {}
        for path in ("/", "/old", "/slow", "/broken", "/api/stock"):
            async with session.get(shop + path) as answer:
                statuses[path] = answer.status
        assert statuses == {"/": 200, "/old": 200, "/slow": 200, "/broken": 500, "/api/stock": 200}
        async with session.post(f"{shop}/api/orders", json={"item": "tea"}) as answer:
            assert (answer.status, (await answer.json())["order"]) == (201, {"item": "tea"})
        async with session.post(f"{shop}/api/orders", data="tea") as answer:
            assert answer.status == 400
        reader, writer = await asyncio.open_connection(HOST, ports.echo)
        writer.write(b"hello")
        assert await reader.read(100) == b"echo: hello"
        writer.close()


async def test_its_certificate_holds_for_those_who_trust_its_authority(tmp_path: Path) -> None:
    async with demo_target(tmp_path, DemoPorts()) as target, aiohttp.ClientSession() as session:
        url = f"https://{HOST}:{target.ports.https}/"
        trusting = ssl.create_default_context(cafile=target.certificate.authority)
        trusting.verify_flags |= ssl.VERIFY_X509_STRICT
        async with session.get(url, ssl=trusting) as answer:
            assert answer.status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(url)
        key = target.certificate.chain_and_key
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


async def test_the_flaky_page_fails_every_few_times(tmp_path: Path) -> None:
    async with demo_target(tmp_path, DemoPorts()) as target, aiohttp.ClientSession() as session:
        statuses = []
        for _ in range(2 * FLAKY_EVERY):
            async with session.get(f"http://{HOST}:{target.ports.http}/flaky") as answer:
                statuses.append(answer.status)
    assert statuses == [*[200] * (FLAKY_EVERY - 1), 503] * 2


@pytest.mark.parametrize("by", ["UDP", "TCP"])
async def test_the_name_server_knows_its_zone(by: str, tmp_path: Path) -> None:
    ask = dns.asyncquery.udp if by == "UDP" else dns.asyncquery.tcp
    async with demo_target(tmp_path, DemoPorts()) as target:
        found = {}
        for name, kind in (("www.shop.test", "A"), ("shop.test", "MX"), ("mall.test", "A")):
            query = dns.message.make_query(name, kind)
            answer = await ask(query, HOST, port=target.ports.dns, timeout=LONG_S)
            found[name] = (answer.rcode(), [str(rrset) for rrset in answer.answer])
    assert found["www.shop.test"] == (
        dns.rcode.NOERROR,
        ["www.shop.test. 60 IN CNAME shop.test.", "shop.test. 60 IN A 127.0.0.1"],
    )
    assert found["shop.test"] == (dns.rcode.NOERROR, ["shop.test. 60 IN MX 10 mail.shop.test."])
    assert found["mall.test"] == (dns.rcode.NXDOMAIN, [])


async def test_garbage_does_not_stop_the_name_server(tmp_path: Path) -> None:
    async with demo_target(tmp_path, DemoPorts()) as target:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(HOST, target.ports.dns)
        )
        transport.sendto(b"garbage")
        transport.sendto(b"")
        transport.close()
        query = dns.message.make_query("shop.test", "A")
        answer = await dns.asyncquery.udp(query, HOST, port=target.ports.dns, timeout=LONG_S)
    assert answer.rcode() == dns.rcode.NOERROR


async def test_ports_stay_the_same_when_they_are_free_and_give_way_when_not(tmp_path: Path) -> None:
    for _ in OFTEN:  # a port that is free again may be another program's by then
        async with demo_target(tmp_path, DemoPorts()) as first:
            async with demo_target(tmp_path, first.ports) as second:
                others = second.ports
            ports = first.ports
        assert {others.http, others.https, others.echo, others.dns}.isdisjoint(
            {ports.http, ports.https, ports.echo, ports.dns}
        )
        async with demo_target(tmp_path, others) as third:
            again = third.ports
        if again == others:
            break
    assert again == others


async def test_the_nightly_job_pings_until_it_is_stopped_whoever_is_away() -> None:
    pinged = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readline()).startswith(b"POST /ping/token "):
            pinged.set()
        writer.close()

    server = await asyncio.start_server(take, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    job = asyncio.create_task(ping_forever(f"http://{HOST}:{port}/ping/token"))
    async with server:
        await asyncio.wait_for(pinged.wait(), LONG_S)
    assert not job.done()
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
