"""Which ID tokens are believed."""

import time
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from service.oidc.id_tokens import UnknownKeyError, read_id_token
from service.oidc.model import OidcFailedError, OidcSettings

KEY = RSAKey.generate_key(2048, {"kid": "one"})
SETTINGS = OidcSettings(issuer="https://login.example.com", client_id="picket")


def claims(**changes: Any) -> dict[str, Any]:
    now_s = int(time.time())
    made = {
        "iss": SETTINGS.issuer,
        "aud": "picket",
        "sub": "ann",
        "iat": now_s,
        "exp": now_s + 300,
        "nonce": "n",
        **changes,
    }
    return {name: value for name, value in made.items() if value is not None}


def read(token: str, *keys: Any) -> dict[str, Any]:
    public = [key.as_dict(private=False) for key in keys or (KEY,)]
    return read_id_token(token, public, SETTINGS, nonce="n")


def token(content: dict[str, Any], *, key: Any = KEY, alg: str = "RS256") -> str:
    return jwt.encode({"alg": alg, "kid": key.kid}, content, key, algorithms=[alg])


def test_a_token_of_the_provider_is_read() -> None:
    assert read(token(claims()))["sub"] == "ann"
    assert read(token(claims(aud=["picket", "other"], azp="picket")))["sub"] == "ann"
    elliptic = ECKey.generate_key("P-256", {"kid": "two"})
    assert read(token(claims(), key=elliptic, alg="ES256"), KEY, elliptic)["sub"] == "ann"


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"aud": ["picket", "other"]},
        {"aud": ["picket", "other"], "azp": "other"},
        {"sub": None},
        {"exp": 1},
        {"exp": None},
        {"iat": 99_999_999_999},
        {"iat": None},
        {"nonce": "of another attempt"},
        {"nonce": None},
    ],
)
def test_a_token_that_is_not_for_this_attempt_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(OidcFailedError):
        read(token(claims(**changes)))


def test_a_token_that_others_signed_is_refused() -> None:
    other = RSAKey.generate_key(2048, {"kid": "one"})
    shared = OctKey.import_key("a secret of 32 letters, or more!", {"kid": "one"})
    head = urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    unsigned = f"{head}.{token(claims()).split('.')[1]}."

    for wrong in (
        token(claims(), key=other),
        token(claims(), key=shared, alg="HS256"),
        unsigned,
        token(claims())[:-4] + "AAAA",
        "",
        "a.b.c",
    ):
        with pytest.raises(UnknownKeyError):
            read(wrong)


def test_without_keys_nothing_is_believed() -> None:
    with pytest.raises(UnknownKeyError):
        read_id_token(token(claims()), [], SETTINGS, nonce="n")


def test_keys_of_other_kinds_do_not_disturb() -> None:
    odd = [
        {"kty": "XYZ"},
        {"kty": "oct", "k": "AAAA"},
        {**KEY.as_dict(private=False), "use": "enc"},
    ]
    public = [*odd, KEY.as_dict(private=False)]

    assert read_id_token(token(claims()), public, SETTINGS, nonce="n")["sub"] == "ann"
