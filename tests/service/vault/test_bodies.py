from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.vault.bodies import CLEAR, decrypt, encrypt
from service.vault.encryption import DecryptionError
from service.vault.texts import HIDDEN
from tests.builders.vaults import a_vault

PLACE: Final = ("check", "account-1", "check-1", "secrets")
SECRET: Final = "s3cr3t-of-nobody"
TEXT: Final = st.text(max_size=20)
PAIR: Final = st.fixed_dictionaries({"key": TEXT, "value": TEXT, "locked": st.booleans()})
URL: Final = st.sampled_from(
    ["", "{{BASE}}/a", "http://shop.test/a@b", f"https://u:{SECRET}@shop.test/a@b?c=d"]
)
REQUEST: Final = st.fixed_dictionaries(
    {
        "headers": st.lists(PAIR, max_size=4),
        "queryParameters": st.lists(PAIR, max_size=4),
        "basicAuth": st.none() | st.fixed_dictionaries({"username": TEXT, "password": TEXT}),
        "url": URL,
    }
)
BODIES: Final = st.fixed_dictionaries(
    {
        "doc": st.fixed_dictionaries({"name": TEXT}, optional={"request": REQUEST}),
        "applied": st.none() | st.fixed_dictionaries({"apiCheckDefaults": REQUEST}),
    }
)


def a_body(**request: Any) -> dict[str, Any]:
    return {"doc": {"name": "Orders", "request": request}}


@given(BODIES)
def test_a_body_is_whole_again_once_its_secrets_are_opened(bodies: dict[str, Any]) -> None:
    bare, secrets = encrypt(bodies, a_vault(), PLACE)
    assert decrypt(bare, secrets, a_vault(), PLACE) == bodies
    assert (bare == bodies) == (secrets is None)


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        (
            {"basicAuth": {"username": "u", "password": SECRET}},
            {"username": "u", "password": HIDDEN},
        ),
        ({"headers": [{"key": "a", "value": SECRET, "locked": True}]}, None),
        ({"queryParameters": [{"key": "a", "value": SECRET, "locked": True}]}, None),
        ({"url": f"https://u:{SECRET}@shop.test/a"}, f"https://{HIDDEN}@shop.test/a"),
    ],
)
def test_what_only_writers_see_is_not_left_in_a_body(request_: dict[str, Any], shown: Any) -> None:
    before = str(request_)
    bare, secrets = encrypt(a_body(**request_), a_vault(), PLACE)
    [(name, left)] = (bare["doc"] or {})["request"].items()
    assert SECRET not in str(bare)
    assert left == (shown or [{**request_[name][0], "value": HIDDEN}])
    assert secrets is not None
    assert SECRET.encode() not in secrets
    assert str(request_) == before, "what was sent is not touched"


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"basicAuth": None, "headers": [], "queryParameters": [], "url": "https://shop.test/a@b"},
        {"basicAuth": {"username": "u", "password": ""}},
        {"headers": [{"key": "a", "value": "seen", "locked": False}]},
        {"headers": [{"key": "a", "value": "", "locked": True}]},
        {"hostname": "mail.test", "port": 25},
    ],
)
def test_a_body_without_a_secret_is_stored_as_it_is(request_: dict[str, Any]) -> None:
    body = a_body(**request_)
    bare, secrets = encrypt(body, a_vault(), PLACE)
    assert bare["doc"] is body["doc"]
    assert secrets is None


@pytest.mark.parametrize("secrets", [None, CLEAR])
def test_a_body_whose_secrets_are_still_in_it_is_whole(secrets: bytes | None) -> None:
    body = a_body(basicAuth={"username": "u", "password": SECRET})
    assert decrypt(body, secrets, a_vault(), PLACE) is body


def test_secrets_open_for_no_other_row() -> None:
    bare, secrets = encrypt(a_body(url=f"https://u:{SECRET}@a"), a_vault(), PLACE)
    with pytest.raises(DecryptionError):
        decrypt(bare, secrets, a_vault(), (*PLACE[:2], "check-2", PLACE[3]))


@pytest.mark.parametrize(
    "other",
    [
        {"doc": {"name": "Orders"}},
        {"doc": {"request": {"headers": []}}},
        {"doc": {"request": {"headers": "none"}}},
        {"doc": None},
    ],
)
def test_secrets_that_do_not_fit_their_body_are_told(other: dict[str, Any]) -> None:
    locked = {"key": "a", "value": SECRET, "locked": True}
    _, secrets = encrypt(a_body(headers=[locked]), a_vault(), PLACE)
    with pytest.raises(DecryptionError, match="does not fit what is stored beside it"):
        decrypt(other, secrets, a_vault(), PLACE)
