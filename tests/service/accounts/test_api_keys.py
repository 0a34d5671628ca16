import hashlib
import re
from pathlib import Path

from service.accounts import actions as accounts
from service.accounts.actions import KeyRequest
from service.accounts.authentication import REMEMBER_S, ApiKeys
from service.accounts.keys import Pepper, digest_key
from service.db.sqlite import open_sqlite
from tests.builders.engines import ON_SQLITE
from tests.servers.public_api import PEPPER, ApiUser, PublicApi


def test_a_key_holds_256_random_bits_and_hides_them() -> None:
    key = PEPPER.new_key("cu_")
    assert re.fullmatch(r"cu_[\w-]{43}", key.raw)
    assert key.raw not in repr(key)
    assert key.digest == PEPPER.as_key(key.raw).digest
    assert key.digest != Pepper(b"another").as_key(key.raw).digest
    assert digest_key(key.raw) not in (key.digest, hashlib.sha256(key.digest).digest())
    assert key.masked == f"cu_****{key.raw[-4:]}"
    assert PEPPER.new_key("cu_").raw != key.raw


async def test_a_first_start_happens_once_and_its_secrets_stay_hidden(api: PublicApi) -> None:
    again = await api.database.write(
        lambda c: accounts.first_start(c, PEPPER, now_ms=api.backend.clock.now_ms(c))
    )
    assert again is None
    assert api.alice.secrets.api_key not in repr(api.alice.secrets)
    assert api.alice.secrets.location_key not in repr(api.alice.secrets)
    assert (await api.alice.get("/v1/private-locations")).body[0]["slugName"] == "default"


@ON_SQLITE
async def test_no_secret_is_stored(api: PublicApi) -> None:
    raw = await api.database.read(lambda c: "\n".join(c.connection.driver_connection.iterdump()))
    assert api.alice.secrets.account_id in raw
    assert api.alice.secrets.api_key not in raw
    assert api.alice.secrets.location_key not in raw


async def test_an_ended_key_is_refused_at_once(api: PublicApi, alice: ApiUser) -> None:
    assert (await alice.get("/v1/checks")).status == 200
    caller = await api.backend.keys.caller(alice.secrets.api_key)
    assert caller is not None
    ended = await api.database.write(
        lambda c: accounts.end_key(
            c, caller.key_id, account_id=caller.account_id, now_ms=api.backend.clock.now_ms(c)
        )
    )
    assert ended
    assert (await alice.get("/v1/checks")).status == 401


async def test_nobody_ends_anothers_key(api: PublicApi, alice: ApiUser, charlie: ApiUser) -> None:
    caller = await api.backend.keys.caller(alice.secrets.api_key)
    assert caller is not None
    ended = await api.database.write(
        lambda c: accounts.end_key(
            c, caller.key_id, account_id=charlie.secrets.account_id, now_ms=0
        )
    )
    assert not ended
    assert (await alice.get("/v1/checks")).status == 200


@ON_SQLITE
async def test_a_key_that_another_process_ended_is_refused_after_a_while(
    api: PublicApi, tmp_path: Path
) -> None:
    now_s = 0.0
    other = open_sqlite(tmp_path / "service.db")
    keys = ApiKeys(other, pepper=PEPPER, monotonic=lambda: now_s)
    caller = await keys.caller(api.alice.secrets.api_key)
    assert caller is not None
    await api.database.write(
        lambda c: accounts.end_key(c, caller.key_id, account_id=caller.account_id, now_ms=1)
    )
    now_s = REMEMBER_S + 1
    assert await keys.caller(api.alice.secrets.api_key) is None
    await other.close()


async def test_a_service_key_speaks_for_its_account(api: PublicApi) -> None:
    account_id = api.alice.secrets.account_id
    wish = KeyRequest(name="ci", of_user=False)
    _, key = await api.database.write(
        lambda c: accounts.create_key(c, PEPPER, account_id, wish=wish, now_ms=1)
    )
    assert key.raw.startswith("sv_")
    caller = await api.backend.keys.caller(key.raw)
    assert caller is not None
    assert caller.account_id == account_id
