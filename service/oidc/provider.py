"""The identity provider: where it is, and what it says of somebody (OpenID Connect Core 1.0)."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec

from service.alert_channels.sending.egress import EgressGate, EgressRule
from service.oidc.login_state import challenge_of
from service.oidc.model import LoginAttempt, OidcFailedError, OidcIdentity, OidcSettings

LIMIT_S: Final = 10.0
_LIMIT_BYTES: Final = 1024 * 1024
_FRESH_S: Final = 3600.0
"""How long what the provider says of itself is believed."""
_RETRY_S: Final = 10.0
"""How long it is left alone after it could not be asked."""
_DISCOVERY: Final = "/.well-known/openid-configuration"
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_USER_AGENT: Final = "picket-sign-in"
_SUCCESS: Final = range(200, 300)
_MOST_LETTERS: Final = 200


class OpenIdProvider:
    """Asks the provider that the settings name.

    Its own host may be anywhere, for the operator chose it; the other hosts that it names are
    reached under the rule for the service's own requests.
    """

    def __init__(
        self, settings: OidcSettings, egress: EgressRule, *, monotonic: Callable[[], float]
    ) -> None:
        self.settings = settings
        self._egress = egress
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._known: Mapping[str, Any] | None = None
        """What it says of itself. None: not asked yet."""
        self._keys: list[Mapping[str, Any]] = []
        self._asked_at_s = 0.0
        self._failure: OidcFailedError | None = None
        """Why it could not be asked last. None: it could."""

    async def authorization_url(self, attempt: LoginAttempt, redirect_url: str) -> str:
        """Where a browser signs in.

        Raises:
            OidcFailedError: the provider cannot be asked.
        """
        endpoint = str((await self._metadata())["authorization_endpoint"])
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_url,
            "scope": "openid email profile",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge_of(attempt),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def identify(self, attempt: LoginAttempt, code: str, redirect_url: str) -> OidcIdentity:
        """Who came back with this code.

        Raises:
            OidcFailedError: the provider cannot be asked, takes the code for none of its own, or
                says what cannot be trusted.
        """
        metadata = await self._metadata()
        tokens = await self._redeem(metadata, attempt, code, redirect_url)
        claims = await self._read_claims(metadata, str(tokens.get("id_token", "")), attempt.nonce)
        if "email" not in claims or self._needs_groups(claims):
            claims = _merge(await self._user_info(metadata, tokens, claims["sub"]), claims)
        return self._identity(claims)

    def _needs_groups(self, claims: Mapping[str, Any]) -> bool:
        return bool(self.settings.roles) and self.settings.groups_claim not in claims

    def _identity(self, claims: Mapping[str, Any]) -> OidcIdentity:
        email, groups = claims.get("email"), claims.get(self.settings.groups_claim)
        is_verified = claims.get("email_verified") in (True, "true")
        name = claims.get("name")
        return OidcIdentity(
            issuer=self.settings.issuer,
            subject=str(claims["sub"])[:_MOST_LETTERS],
            email=email if isinstance(email, str) and is_verified else None,
            name=name.strip() if isinstance(name, str) else "",
            groups=frozenset(map(str, groups)) if isinstance(groups, list) else frozenset(),
        )

    async def _redeem(
        self, metadata: Mapping[str, Any], attempt: LoginAttempt, code: str, redirect_url: str
    ) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "code_verifier": attempt.verifier,
            "client_id": self.settings.client_id,
        }
        headers = {}
        secret = self.settings.client_secret
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if secret is not None and "client_secret_basic" in methods:
            # RFC 6749, 2.3.1: both are encoded as in a form before they are put together.
            user, password = quote(self.settings.client_id, safe=""), quote(secret, safe="")
            headers["authorization"] = f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
        elif secret is not None:
            form["client_secret"] = secret
        return await self._ask(str(metadata["token_endpoint"]), form=form, headers=headers)

    async def _read_claims(
        self, metadata: Mapping[str, Any], token: str, nonce: str
    ) -> dict[str, Any]:
        # Loaded when somebody signs in so: the service starts without it.
        from service.oidc.id_tokens import UnknownKeyError, read_id_token  # noqa: PLC0415

        try:
            return read_id_token(token, self._keys, self.settings, nonce=nonce)
        except UnknownKeyError:
            await self._read_keys(metadata)  # the provider changes its keys now and then
        try:
            return read_id_token(token, self._keys, self.settings, nonce=nonce)
        except UnknownKeyError as problem:
            raise OidcFailedError(
                f"The ID token of {self.settings.issuer} is signed with none of its keys."
            ) from problem

    async def _user_info(
        self, metadata: Mapping[str, Any], tokens: Mapping[str, Any], subject: str
    ) -> Mapping[str, Any]:
        url = metadata.get("userinfo_endpoint")
        if url is None:
            return {}
        headers = {"authorization": f"Bearer {tokens.get('access_token', '')}"}
        found = await self._ask(str(url), headers=headers)
        return found if found.get("sub") == subject else {}  # of somebody else: 5.3.2

    async def _metadata(self) -> Mapping[str, Any]:
        async with self._lock:
            age_s = self._monotonic() - self._asked_at_s
            if self._failure is not None and age_s <= _RETRY_S:
                raise OidcFailedError(self._failure.message) from self._failure
            if self._known is None or age_s > _FRESH_S:
                self._known = await self._discover_or_note()
            return self._known

    async def _discover_or_note(self) -> Mapping[str, Any]:
        """Ask once for all who wait: a failure holds for them, too."""
        try:
            found = await self._discover()
        except OidcFailedError as problem:
            self._known, self._failure, self._asked_at_s = None, problem, self._monotonic()
            raise
        self._failure, self._asked_at_s = None, self._monotonic()
        return found

    async def _discover(self) -> Mapping[str, Any]:
        issuer = self.settings.issuer
        found = await self._ask(issuer.rstrip("/") + _DISCOVERY)
        if found.get("issuer") != issuer:
            raise OidcFailedError(
                f"OIDC_ISSUER is {issuer}, but the provider there calls itself"
                f" {str(found.get('issuer'))[:_MOST_LETTERS]}; set OIDC_ISSUER to that."
            )
        for name in _ENDPOINTS:
            self._require_endpoint(name, str(found.get(name, "")))
        return found

    def _require_endpoint(self, name: str, url: str) -> None:
        allowed = {"https", urlsplit(self.settings.issuer).scheme}
        if urlsplit(url).scheme not in allowed:
            raise OidcFailedError(f"{self.settings.issuer} names no https address as its {name}.")

    async def _read_keys(self, metadata: Mapping[str, Any]) -> None:
        found = await self._ask(str(metadata["jwks_uri"]))
        keys = found.get("keys")
        self._keys = (
            [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
        )

    async def _ask(
        self,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """One exchange: a JSON object.

        Raises:
            OidcFailedError: there was none.
        """
        gate = EgressGate(self._egress)
        try:
            status, body = await self._exchange(url, gate, form=form, headers=headers or {})
        except TimeoutError:
            raise self._failed(url, f"did not answer within {LIMIT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            refusal = gate.refusal and f"{gate.refusal}; ALERT_EGRESS_ALLOW can allow it"
            raise self._failed(url, f"cannot be reached: {refusal or problem}") from problem
        try:
            found = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = None
        if status not in _SUCCESS:
            said = found.get("error_description") or found.get("error") if found else None
            words = f" ({str(said)[:_MOST_LETTERS]})" if said else ""
            raise self._failed(url, f"answered {status}{words}")
        if not isinstance(found, dict):
            raise self._failed(url, "answered no JSON object")
        return found

    async def _exchange(
        self,
        url: str,
        gate: EgressGate,
        *,
        form: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        is_own = urlsplit(url).hostname == urlsplit(self.settings.issuer).hostname
        connector = aiohttp.TCPConnector(
            force_close=True,
            resolver=aiohttp.ThreadedResolver(),
            use_dns_cache=False,
            socket_factory=None if is_own else gate.open_socket,
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=LIMIT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            session.request(
                "GET" if form is None else "POST",
                url,
                data=form,
                headers={"accept": "application/json", "user-agent": _USER_AGENT, **headers},
                allow_redirects=False,
            ) as answer,
        ):
            body = await answer.content.read(_LIMIT_BYTES)
            while not answer.content.at_eof() and len(body) < _LIMIT_BYTES:
                body += await answer.content.read(_LIMIT_BYTES - len(body))
            return answer.status, body

    def _failed(self, url: str, what: str) -> OidcFailedError:
        return OidcFailedError(f"The identity provider at {urlsplit(url).netloc} {what}.")


def _merge(user_info: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, Any]:
    """What both say of a person; an address comes with the word of its own source on it."""
    of_address = ("email", "email_verified")
    source = claims if "email" in claims else user_info
    both = {**user_info, **claims}
    rest = {name: value for name, value in both.items() if name not in of_address}
    return {**rest, **{name: source[name] for name in of_address if name in source}}
