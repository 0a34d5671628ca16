"""ID tokens: signatures and claims (OpenID Connect Core 1.0, 3.1.3.7)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry

from service.oidc.model import OidcFailedError, OidcSettings

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384")
"""Signatures by a key that only the provider has; `none` and HMAC are not among them."""
_KEY_TYPES: Final = frozenset({"RSA", "EC"})
_LEEWAY_S: Final = 60


class UnknownKeyError(Exception):
    """The token is signed with a key that is not among these; the provider may have a new one."""


def read_id_token(
    token: str, keys: Sequence[Mapping[str, Any]], settings: OidcSettings, *, nonce: str
) -> dict[str, Any]:
    """The claims of a token, all of which are checked.

    Raises:
        UnknownKeyError: the key is not among these.
        OidcFailedError: it is not for us, not by the provider, or too old.
    """
    usable = [key for key in keys if key.get("kty") in _KEY_TYPES and key.get("use") != "enc"]
    try:
        key_set = KeySet.import_key_set({"keys": usable})  # type: ignore[typeddict-item]
        decoded = jwt.decode(token, key_set, algorithms=_ALGORITHMS)
    except (JoseError, ValueError) as problem:
        raise UnknownKeyError(str(problem)) from problem
    claims = decoded.claims
    registry = JWTClaimsRegistry(
        leeway=_LEEWAY_S,
        iss={"essential": True, "value": settings.issuer},
        aud={"essential": True, "value": settings.client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        registry.validate(claims)
    except JoseError as problem:
        raise OidcFailedError(
            f"The ID token of {settings.issuer} cannot be trusted: {_explain(problem)}."
        ) from problem
    if len(_list(claims["aud"])) > 1 and claims.get("azp") != settings.client_id:
        raise OidcFailedError(f"The ID token of {settings.issuer} was issued for another program.")
    return claims


def _explain(problem: JoseError) -> str:
    return (problem.description or problem.error).rstrip(".")


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
