from typing import Any, Final

import pytest

from service.accounts.model import Role
from service.groups.model import BASE_URL
from service.http.errors import InvalidError
from service.variables import store as variables
from service.variables.model import Owner
from service.vault.encryption import DecryptionError
from service.vault.masked_values import restore_hidden, restore_proxy
from service.vault.texts import HIDDEN
from tests.builders.check_bodies import check_body, with_request
from tests.servers.public_api import ApiUser, PublicApi

SECRET: Final = "s3cr3t-of-nobody"


def a_body(**request: Any) -> dict[str, Any]:
    return {"name": "Orders", "request": request}


def pair(key: str, value: str, *, locked: bool = True) -> dict[str, Any]:
    return {"key": key, "value": value, "locked": locked}


STORED: Final = a_body(
    headers=[pair("a", "1"), pair("b", "first"), pair("b", "second")],
    queryParameters=[pair("q", "2")],
    basicAuth={"username": "u", "password": SECRET},
    url=f"https://u:{SECRET}@shop.test/a",
)


def damaged() -> dict[str, Any]:
    raise DecryptionError("it was changed")


@pytest.mark.parametrize(
    ("sent", "stays"),
    [
        ({"basicAuth": {"username": "other", "password": HIDDEN}}, SECRET),
        ({"url": f"https://{HIDDEN}@other.test/b"}, f"https://u:{SECRET}@other.test/b"),
        ({"headers": [pair("new", "x"), pair("a", HIDDEN)]}, "'1'"),
        ({"headers": [pair("a", HIDDEN, locked=False)]}, "'1'"),
        ({"queryParameters": [pair("q", HIDDEN)]}, "'2'"),
    ],
)
def test_what_is_sent_back_as_it_was_shown_stays(sent: dict[str, Any], stays: str) -> None:
    body = a_body(**sent)
    before = str(body)
    whole = str(restore_hidden(body, lambda: STORED))
    assert stays in whole
    assert HIDDEN not in whole
    assert str(body) == before, "what was sent is not touched"


def test_headers_of_one_name_keep_their_values_in_order() -> None:
    sent = [pair("b", HIDDEN), pair("a", HIDDEN), pair("b", HIDDEN)]
    whole = restore_hidden(a_body(headers=sent), lambda: STORED)
    assert [one["value"] for one in whole["request"]["headers"]] == ["first", "1", "second"]


def test_where_nothing_is_hidden_nothing_is_opened() -> None:
    body = a_body(headers=[pair("a", "x")], url="https://u:p@shop.test/")
    assert restore_hidden(body, damaged) is body
    assert restore_hidden({"name": "Beat"}, damaged) == {"name": "Beat"}


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"headers": [pair("c", "x"), pair("other", HIDDEN)]}, "request.headers[1].value"),
        ({"headers": [pair("b", HIDDEN)]}, "request.headers[0].value"),
        ({"queryParameters": [pair("a", HIDDEN)]}, "request.queryParameters[0].value"),
    ],
)
def test_nothing_is_kept_that_could_be_another_one(sent: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidError) as caught:
        restore_hidden(a_body(**sent), lambda: STORED)
    assert caught.value.keys == (field,)
    assert caught.value.message == (
        f'"{field}" holds {HIDDEN}, which keeps the stored value, and nothing is stored here.'
        " Send the value."
    )


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"basicAuth": {"username": "u", "password": HIDDEN}}, "request.basicAuth.password"),
        ({"url": f"https://{HIDDEN}@shop.test/a"}, "request.url"),
        ({"headers": [pair("a", HIDDEN)]}, "request.headers[0].value"),
    ],
)
def test_what_was_never_there_cannot_stay(sent: dict[str, Any], field: str) -> None:
    bare = a_body(basicAuth={"username": "u", "password": ""}, url="https://shop.test/")
    for stored in (None, lambda: a_body(basicAuth=None), lambda: bare, dict):
        with pytest.raises(InvalidError) as caught:
            restore_hidden(a_body(**sent), stored)
        assert caught.value.keys == (field,)


def test_what_does_not_open_cannot_stay() -> None:
    with pytest.raises(
        InvalidError, match="which keeps the stored value, and that can no longer be"
    ):
        restore_hidden(a_body(url=f"https://{HIDDEN}@shop.test/"), damaged)
    with pytest.raises(InvalidError, match="can no longer be read: it was changed"):
        restore_proxy(f"http://{HIDDEN}@proxy.test", lambda: str(damaged()))


def test_a_proxy_keeps_its_credentials() -> None:
    for stored in ("socks5://u:p@old:1", "http://u:a/b@c@old:1"):
        credentials = stored.partition("//")[2].rpartition("@")[0]
        whole = restore_proxy(f"http://{HIDDEN}@proxy.test:3128", lambda given=stored: given)
        assert whole == f"http://{credentials}@proxy.test:3128"
    assert restore_proxy("http://u:p@proxy.test", None) == "http://u:p@proxy.test"
    assert restore_proxy(None, None) is None
    for none in (None, lambda: None, lambda: "http://old:1"):
        with pytest.raises(InvalidError, match='"proxyUrl" holds'):
            restore_proxy(f"http://{HIDDEN}@proxy.test", none)


async def read_by_a_reader_and_sent_back(
    api: PublicApi, alice: ApiUser, path: str, put: str
) -> tuple[Any, Any, Any]:
    """As its owner sees it before and after, and as it was sent."""
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    before, shown = (await alice.get(path)).body, (await reader.get(path)).body
    answer = await alice.put(put, shown)
    assert answer.status == 200, answer.body
    return before, (await alice.get(path)).body, shown


def secret_request() -> dict[str, Any]:
    return {
        **check_body("api")["request"],
        "headers": [pair("a", SECRET), pair("b", "seen", locked=False)],
        "basicAuth": {"username": "u", "password": SECRET},
        "url": f"https://u:{SECRET}@shop.test/a",
    }


VARIABLES: Final = [
    {"key": "LOCKED", "value": SECRET, "locked": True},
    {"key": "SECRET", "value": SECRET, "secret": True},
    {"key": "OPEN", "value": "seen"},
]


async def test_a_check_that_a_reader_has_read_loses_nothing_when_a_writer_sends_it_back(
    api: PublicApi, alice: ApiUser
) -> None:
    body = with_request("api", **secret_request()) | {"environmentVariables": VARIABLES}
    check = (await alice.post("/v1/checks/api", body)).body
    path, put = f"/v1/checks/{check['id']}", f"/v1/checks/api/{check['id']}"
    before, after, shown = await read_by_a_reader_and_sent_back(api, alice, path, put)
    assert {**after, "updated_at": None} == before
    assert SECRET not in str(shown)
    copied = await alice.post("/v1/checks/api", shown)
    assert copied.status == 400, "no password is made of what stands for one"


async def test_a_group_that_a_reader_has_read_loses_nothing_when_a_writer_sends_it_back(
    api: PublicApi, alice: ApiUser
) -> None:
    given = {name: secret_request()[name] for name in ("headers", "basicAuth", "url")}
    body = {"name": "Shop", "apiCheckDefaults": given, "environmentVariables": VARIABLES}
    group = (await alice.post("/v1/check-groups", body)).body
    own = {**with_request("api", url="{{GROUP_BASE_URL}}"), "groupId": group["id"]}
    check = (await alice.post("/v1/checks/api", own)).body
    path = f"/v1/check-groups/{group['id']}"
    before, after, shown = await read_by_a_reader_and_sent_back(api, alice, path, path)
    assert {**after, "updated_at": None} == before
    assert SECRET not in str(shown)
    row = await api.database.read(
        lambda c: variables.list_all(c, Owner.group(api.alice.secrets.account_id, group["id"]))
    )
    urls = [api.backend.vault.decrypt(one.value, one.place) for one in row if one.key == BASE_URL]
    assert urls == [given["url"]]
    runs = (await alice.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body
    assert runs["request"]["basicAuth"] == given["basicAuth"]


async def test_a_location_that_a_reader_has_read_loses_nothing_when_a_writer_sends_it_back(
    api: PublicApi, alice: ApiUser
) -> None:
    body = {"name": "Cellar", "slugName": "cellar", "proxyUrl": f"http://u:{SECRET}@proxy.test:1"}
    path = f"/v1/private-locations/{(await alice.post('/v1/private-locations', body)).body['id']}"
    before, after, shown = await read_by_a_reader_and_sent_back(api, alice, path, path)
    assert after["proxyUrl"] == before["proxyUrl"] == body["proxyUrl"]
    assert SECRET not in str(shown)
    copied = {**body, "slugName": "other", "proxyUrl": shown["proxyUrl"]}
    assert (await alice.post("/v1/private-locations", copied)).status == 400


@pytest.mark.parametrize(
    ("was", "sent", "status"),
    [
        ({"locked": True}, {"locked": True}, 200),
        ({"locked": True}, {}, 200),
        ({"locked": True}, {"secret": True}, 200),
        ({"secret": True}, {"secret": True}, 200),
        ({"secret": True}, {"locked": True}, 200),
        ({"secret": True}, {"locked": True, "secret": False}, 400),
    ],
)
async def test_a_variable_is_kept_unless_a_secret_would_be_shown_by_it(
    api: PublicApi, alice: ApiUser, was: dict[str, bool], sent: dict[str, bool], status: int
) -> None:
    await alice.post("/v1/variables", {"key": "TOKEN", "value": SECRET, **was})
    answer = await alice.put("/v1/variables/TOKEN", {"value": HIDDEN, **sent})
    assert answer.status == status, answer.body
    (row,) = await api.database.read(
        lambda c: variables.list_all(c, Owner.account(api.alice.secrets.account_id))
    )
    assert api.backend.vault.decrypt(row.value, row.place) == SECRET
    fresh = await alice.post("/v1/variables", {"key": "NEW", "value": HIDDEN, **sent})
    assert fresh.status == 400
    assert fresh.body["message"] == (
        f'"value" is {HIDDEN}, which keeps a stored value, and there is none. Send the value.'
    )
