from typing import Any

import pytest
import trustme

from tests.builders.certificates import DAY, NOW, certificate_body, encrypted, issued
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/client-certificates"


async def made(user: ApiUser, **fields: Any) -> dict[str, Any]:
    answer = await user.post(PATH, certificate_body(**fields))
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def refused(user: ApiUser, **fields: Any) -> str:
    answer = await user.post(PATH, certificate_body(**fields))
    assert answer.status == 400, answer.body
    assert "PRIVATE KEY-----\n" not in str(answer.body)
    return str(answer.body["message"])


async def test_a_certificate_is_made_read_listed_and_deleted(alice: ApiUser) -> None:
    body = certificate_body(passphrase="")
    answer = await alice.post(PATH, body)
    assert answer.status == 201
    first = answer.body
    assert first.keys() == {"id", "host", "cert", "ca", "created_at", "expires_at"}
    assert (first["host"], first["cert"], first["ca"]) == (body["host"], body["cert"], None)
    assert first["expires_at"].startswith(f"{NOW + 90 * DAY:%Y-%m-%dT%H:%M}")
    path = f"{PATH}/{first['id']}"
    assert (await alice.get(path)).body == first
    second = await made(alice, host="pay.shop.test", ca=issued()[0])
    assert (await alice.get(PATH)).body == [second, first]
    assert (await alice.delete(path)).status == 204
    for gone in (await alice.get(path), await alice.delete(path)):
        assert gone.status == 404
    assert (await alice.get(PATH)).body == [second]


async def test_key_and_passphrase_are_never_shown(alice: ApiUser) -> None:
    cert, key = issued()
    sealed = encrypted(key, "open sesame")
    answer = await alice.post(
        PATH, {"host": "*", "cert": cert, "key": sealed, "passphrase": "open sesame"}
    )
    told = [answer, await alice.get(PATH), await alice.get(f"{PATH}/{answer.body['id']}")]
    for one in told:
        assert "open sesame" not in str(one.body)
        assert "PRIVATE KEY" not in str(one.body)


async def test_charlie_sees_nothing_of_alices_and_bob_all(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    path = f"{PATH}/{(await made(alice))['id']}"
    assert (await charlie.get(PATH)).body == []
    assert (await charlie.get(path)).status == 404
    assert (await charlie.delete(path)).status == 404
    bob = await api.colleague("Bob")
    assert (await bob.get(path)).status == 200


@pytest.mark.parametrize("legacy", [False, True])
async def test_a_passphrase_opens_the_key(alice: ApiUser, *, legacy: bool) -> None:
    cert, key = issued()
    locked = encrypted(key, "open sesame", legacy=legacy)
    given = {"cert": cert, "key": locked}
    await made(alice, **given, passphrase="open sesame")
    assert await refused(alice, **given) == '"passphrase" is missing, and the key is encrypted.'
    said = await refused(alice, **given, passphrase="open barley")
    assert said == '"passphrase" does not decrypt the key.'


async def test_a_passphrase_of_a_key_that_needs_none_is_told(alice: ApiUser) -> None:
    said = await refused(alice, passphrase="open sesame")
    assert said == '"passphrase" is given, but the key is not encrypted; omit it.'


async def test_the_key_belongs_to_the_first_certificate(alice: ApiUser) -> None:
    cert, key = issued()
    other, _ = issued()
    assert (await refused(alice, cert=cert, key=issued()[1])).startswith('"key" is not the key of')
    await made(alice, cert=cert + other, key=key)
    assert (await refused(alice, cert=other + cert, key=key)).startswith('"key" is not the key of')


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cert": "shop"}, '"cert" is not a certificate in PEM; it begins with'),
        ({"cert": ""}, '"cert" must not be empty.'),
        ({"ca": "shop"}, '"ca" is not a certificate in PEM; it begins with'),
        ({"key": "shop"}, '"key" is not a private key in PEM; it begins with'),
        ({"key": "shop", "passphrase": "x"}, '"key" is not a private key in PEM; it begins with'),
        ({"key": 482913}, '"key" must be a string.'),
        ({"key": None}, '"key" must be a string.'),
        ({"passphrase": 482913}, '"passphrase" must be a string.'),
        ({"host": "https://shop.test"}, '"host" is a URL; use only its host'),
        ({"host": "{a,b}.test"}, '"host" must be a host or a glob'),
        ({"host": "a" * 261}, '"host" has 261 characters; use at most 260.'),
        ({"cert": "x" * 32_769}, '"cert" has 32769 characters; use at most 32768.'),
        ({"ca": "x" * 32_769}, '"ca" has 32769 characters; use at most 32768.'),
        ({"key": "x" * 8_193}, '"key" has 8193 characters; use at most 8192.'),
        ({"passphrase": "x" * 1_001}, '"passphrase" has 1001 characters; use at most 1000.'),
    ],
)
async def test_what_does_not_fit_is_refused_in_a_sentence(
    alice: ApiUser, fields: dict[str, Any], said: str
) -> None:
    assert (await refused(alice, **fields)).startswith(said)


async def test_the_longest_of_each_field_is_taken(alice: ApiUser) -> None:
    cert, key = issued()
    room = "\n" * 40_000
    await made(alice, host="a" * 260, cert=(cert + room)[:32_768], key=(key + room)[:8_192])
    locked = encrypted(key, "x" * 1_000)
    await made(alice, cert=cert, key=locked, passphrase="x" * 1_000, ca=(cert + room)[:32_768])


@pytest.mark.parametrize("field", ["host", "cert", "key"])
async def test_nothing_of_a_certificate_goes_without_saying(alice: ApiUser, field: str) -> None:
    body = certificate_body()
    del body[field]
    answer = await alice.post(PATH, body)
    assert (answer.status, answer.body["message"]) == (400, f'"{field}" is missing.')


@pytest.mark.parametrize("field", ["cert", "ca"])
async def test_a_key_in_a_field_that_is_shown_is_refused(alice: ApiUser, field: str) -> None:
    cert, key = issued()
    said = await refused(alice, **{"cert": cert, "key": key, field: cert + key})
    assert said == f'"{field}" contains a private key, which would be shown; send it as key.'


async def test_an_ended_certificate_is_taken_and_says_when_it_ended(alice: ApiUser) -> None:
    cert, key = issued(days=-3)
    first = await made(alice, cert=cert, key=key)
    assert first["expires_at"].startswith(f"{NOW - 3 * DAY:%Y-%m-%dT%H:%M}")


@pytest.mark.parametrize("kind", list(trustme.KeyType))
async def test_keys_of_usual_kinds_are_taken(alice: ApiUser, kind: trustme.KeyType) -> None:
    leaf = trustme.CA().issue_cert("shop.test", key_type=kind)
    cert = leaf.cert_chain_pems[0].bytes().decode()
    await made(alice, cert=cert, key=leaf.private_key_pem.bytes().decode())


async def test_an_accounts_certificates_fit_into_its_jobs(alice: ApiUser, charlie: ApiUser) -> None:
    cert, key = issued()
    padded = (cert + "\n" * 40_000)[:32_768]
    for _ in range(7):
        await made(alice, cert=padded, key=key, ca=padded)
    answer = await alice.post(PATH, certificate_body(cert=padded, key=key, ca=padded))
    assert answer.status == 400
    assert answer.body["message"].endswith(
        "bytes together; use at most 524288; delete one that has expired."
    )
    assert len((await alice.get(PATH)).body) == 7
    await made(charlie, cert=padded, key=key, ca=padded)
