"""How an exchange gets to its target: the proxy, and the client certificate to show there. Pure."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pycurl

from contract.job import ClientCertificate
from contract.requests import IpFamily
from runners.kit.addresses import wrong_family
from runners.kit.http.request import HopRequest, Origin


@dataclass(frozen=True, slots=True)
class Route:
    """What stands between the agent and the target, and what the agent shows."""

    proxy_url: str | None = None
    """None: direct."""
    certificates: tuple[ClientCertificate, ...] = ()
    """Newest first."""

    @classmethod
    def of(cls, proxy_url: str | None, certificates: Sequence[ClientCertificate]) -> "Route":
        """The route of one exchange."""
        if proxy_url is None and not certificates:
            return DIRECT
        return cls(proxy_url or None, tuple(certificates))

    @property
    def is_plain(self) -> bool:
        """Nothing has to be set."""
        return self.proxy_url is None and not self.certificates

    @property
    def proxy_shown(self) -> str | None:
        """Host and port of the proxy, without credentials. None: direct."""
        if self.proxy_url is None:
            return None
        try:
            parts = urlsplit(with_scheme(self.proxy_url))
            port = parts.port
        except ValueError:  # a password with a slash in it would pass for a port
            return "(its address cannot be read)"
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return host if port is None else f"{host}:{port}"

    @property
    def reads_requests(self) -> bool:
        """Whether the proxy speaks HTTP, and so answers itself where it is asked in clear."""
        proxy_url = with_scheme(self.proxy_url or "socks5://").lower()
        return proxy_url.startswith(("http://", "https://"))

    def certificate_for(self, origin: Origin) -> ClientCertificate | None:
        """The certificate to show: an exact host wins, then the newest glob. None: none fits."""
        places = (origin.host, f"{origin.host}:{origin.port}")
        for one in self.certificates:
            if one.host.lower() in places:
                return one
        for one in self.certificates:
            if any(fnmatchcase(place, one.host.lower()) for place in places):
                return one
        return None

    def settings(self, hop: HopRequest) -> list[tuple[int, Any]]:
        """Options of libcurl for this hop."""
        settings: list[tuple[int, Any]] = []
        if self.proxy_url is not None:
            settings.append((pycurl.PROXY, with_scheme(self.proxy_url).encode()))
        certificate = self.certificate_for(hop.origin) if hop.origin.scheme == "https" else None
        if certificate is not None:
            settings.append((pycurl.SSLCERT_BLOB, certificate.cert.encode()))
            settings.append((pycurl.SSLKEY_BLOB, certificate.key.encode()))
            if certificate.passphrase is not None:
                settings.append((pycurl.KEYPASSWD, certificate.passphrase.encode()))
        return settings


DIRECT = Route()


def with_scheme(proxy_url: str) -> str:
    """As a URL: a proxy without a scheme speaks HTTP."""
    return proxy_url if "://" in proxy_url else f"http://{proxy_url}"


def is_literal(host: str) -> bool:
    """Whether the host is an address in its plain form, so that nothing has to be resolved.

    Other forms (127.1, 0x7f000001) are understood by libcurl too; they count as names here, so
    that the address that comes of them is judged.
    """
    return _version(host) is not None


def family_mismatch(host: str, family: IpFamily) -> str | None:
    """Why an address cannot be reached by this family. None: it can, or it is a name."""
    return wrong_family(host, family)


@lru_cache(maxsize=4096)
def _version(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None
