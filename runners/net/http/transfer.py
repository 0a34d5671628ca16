"""One transfer of libcurl: its options and its result."""

import io
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pycurl

from contract.requests import HttpVersion, IpFamily
from runners.net.http.curl_multi import CurlResult
from runners.net.http.request import ACCEPT_ENCODING, SENDS_EMPTY_BODY, HopRequest
from runners.net.http.response import Head, read_head
from runners.net.tls.certificates import (
    CERTIFICATE_MESSAGES,
    chain_of_info,
    is_certificate_message,
    is_certificate_request,
    read_chain,
)

READ_LIMIT_BYTES: Final = 25 * 1024 * 1024
"""How much of a decoded body is read; a gzip bomb ends here too."""

# Options that this pycurl has no name for yet; the numbers are libcurl's and never change.
_SUPPRESS_CONNECT_HEADERS: Final = 265
_QUICK_EXIT: Final = 322

_VERSIONS: Final = {
    HttpVersion.AUTO: pycurl.CURL_HTTP_VERSION_2TLS,
    HttpVersion.HTTP_1_1: pycurl.CURL_HTTP_VERSION_1_1,
    HttpVersion.HTTP_2: pycurl.CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE,
    HttpVersion.HTTP_3: pycurl.CURL_HTTP_VERSION_3ONLY,
}
_USUAL_GROUPS: Final = (pycurl.SSL_EC_CURVES, "X25519:P-256:P-384")
"""A post-quantum key share costs 12 % of a handshake, and hardly any server asks for it."""
_FAMILIES: Final = {IpFamily.IPV4: pycurl.IPRESOLVE_V4, IpFamily.IPV6: pycurl.IPRESOLVE_V6}
_POSSIBLE_SHORTAGE: Final = frozenset(
    {pycurl.E_COULDNT_RESOLVE_PROXY, pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT}
)
_TLS_1_3_CIPHERS: Final = (
    pycurl.TLS13_CIPHERS,
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256",
)
"""The order of browsers and Go: processors compute SHA-256 themselves, SHA-384 costs 3 % more."""
_NO_PROXY: Final = ((pycurl.PROXY, ""), (pycurl.NOPROXY, ""))
"""Without these libcurl would read the agent's own proxy from the environment."""
_TEXT: Final = pycurl.INFOTYPE_TEXT
_TLS_IN: Final = pycurl.INFOTYPE_SSL_DATA_IN
_TLS_LINE: Final = b"SSL connection using "


class HandleConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a handle besides URL, headers and time limit."""

    tls: bool
    guarded: bool
    """Whether the egress rules judge each address before a socket is opened to it."""
    family: IpFamily
    http_version: HttpVersion
    verify: bool
    every_group: bool = False
    """Whether to offer all key exchanges of OpenSSL, the post-quantum ones included."""


class CurlTimings(msgspec.Struct, frozen=True):
    """When each phase ended, in µs since the transfer was started; 0: it did not happen."""

    queue: int
    dns: int
    tcp: int
    tls: int
    first_byte: int
    total: int


_TIMES: Final = (
    pycurl.QUEUE_TIME_T,
    pycurl.NAMELOOKUP_TIME_T,
    pycurl.CONNECT_TIME_T,
    pycurl.APPCONNECT_TIME_T,
    pycurl.STARTTRANSFER_TIME_T,
    pycurl.TOTAL_TIME_T,
)


class TransferResult(msgspec.Struct, frozen=True, kw_only=True):
    """What libcurl reports of one transfer."""

    ended: CurlResult
    head: Head | None
    """None: no response began."""
    body: bytes
    """The beginning of the decoded body, as much as was asked to be kept."""
    body_bytes: int = 0
    """How many bytes of the decoded body were read."""
    body_cut: bool
    """Whether the body was longer than the read limit."""
    times: CurlTimings
    address: str
    """The peer's address, or the last one tried; empty when there was none."""
    errno: int
    refusal: str | None
    """Why the egress rules refused the address. None: they did not."""
    tls_line: str = ""
    """Version and cipher, as libcurl prints them; empty without TLS."""
    verify_result: int = 0
    """OpenSSL's verdict on the chain; 0 is good."""
    chain: tuple[bytes, ...] = ()
    """The certificates that the server presented (DER), its own first."""
    wants_certificate: bool = False
    """Whether the server requested a client certificate."""


def _has_memory() -> int | None:
    return None


@dataclass(slots=True, eq=False)
class Transfer:
    """A handle and the fields that its callbacks write; used for many transfers."""

    config: HandleConfig
    roots_path: str
    refuses: Callable[[str, str], str | None]
    curl: Any = field(default_factory=pycurl.Curl)
    lines: list[bytes] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)
    long_body: io.BytesIO | None = None
    """The body in one piece, which is never joined from pieces. None: it is short so far."""
    room: int = READ_LIMIT_BYTES
    keeps_above: int = 0
    """At this much room or less, the body is read and counted, but not kept."""
    ask_for_memory: Callable[[], int | None] = _has_memory
    """Called before a piece of a body is kept; what it returns other than None goes to libcurl."""
    body_cut: bool = False
    tls_line: bytes = b""
    certificates: bytes = b""
    """The server's Certificate message; empty: none was received."""
    wants_certificate: bool = False
    host: str = ""
    tried: str = ""
    refusal: str | None = None
    errno: int = 0

    def __post_init__(self) -> None:
        set_option = self.curl.setopt
        for option, value in self._settings():
            set_option(option, value)

    def _settings(self) -> list[tuple[int, Any]]:
        config = self.config
        settings: list[tuple[int, Any]] = [
            (pycurl.HEADERFUNCTION, self.lines.append),
            (pycurl.WRITEFUNCTION, self._write_body),
            (pycurl.NOSIGNAL, 1),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            # Every check measures a connection of its own.
            (pycurl.FRESH_CONNECT, 1),
            (pycurl.FORBID_REUSE, 1),
            (pycurl.DNS_CACHE_TIMEOUT, 0),
            # A name lookup that hangs must not hold the event loop when its check is over.
            (_QUICK_EXIT, 1),
            (_SUPPRESS_CONNECT_HEADERS, 1),
            *_NO_PROXY,
            (pycurl.ACCEPT_ENCODING, ACCEPT_ENCODING),
            (pycurl.IPRESOLVE, _FAMILIES[config.family]),
            (pycurl.HTTP_VERSION, _VERSIONS[config.http_version]),
        ]
        if config.tls:
            settings += self._tls_settings()
        if config.guarded:
            settings.append((pycurl.OPENSOCKETFUNCTION, self._open_socket))
        return settings

    def _tls_settings(self) -> list[tuple[int, Any]]:
        verify = self.config.verify
        settings: list[tuple[int, Any]] = [] if self.config.every_group else [_USUAL_GROUPS]
        if self.config.http_version is HttpVersion.HTTP_3:
            # Over QUIC libcurl shows no handshake messages; only this reports the chain.
            settings.append((pycurl.OPT_CERTINFO, 1))
        return [
            *settings,
            _TLS_1_3_CIPHERS,
            (pycurl.CAINFO, self.roots_path),
            (pycurl.SSL_SESSIONID_CACHE, 0),
            (pycurl.SSL_VERIFYPEER, int(verify)),
            (pycurl.SSL_VERIFYHOST, 2 if verify else 0),
            # Version and cipher are reported in this way only, and the chain most cheaply:
            # OPT_CERTINFO prints every field of it, for 6 % of an exchange.
            (pycurl.DEBUGFUNCTION, self._read_debug),
            (pycurl.VERBOSE, 1),
        ]

    def prepare(self, hop: HopRequest, *, timeout_ms: int, keep_bytes: int) -> None:
        """Set what differs from hop to hop."""
        self.keeps_above = READ_LIMIT_BYTES - keep_bytes
        self.host = hop.origin.host
        set_option = self.curl.setopt
        set_option(pycurl.URL, hop.url)
        set_option(pycurl.TIMEOUT_MS, timeout_ms)
        set_option(pycurl.HTTPHEADER, hop.header_lines)

    def prepare_method(self, hop: HopRequest) -> None:
        """Set method and body; a plain GET without a body needs neither."""
        set_option = self.curl.setopt
        if hop.method == "HEAD":
            set_option(pycurl.NOBODY, 1)
            return
        if hop.body is not None or hop.method in SENDS_EMPTY_BODY:
            set_option(pycurl.POSTFIELDS, hop.body or b"")
        set_option(pycurl.CUSTOMREQUEST, hop.method)

    def collect(self, ended: CurlResult, *, waited_s: float = 0.0) -> TransferResult:
        """Collect the result, and make the handle ready for the next transfer.

        `waited_s`: how long the transfer waited for memory, which is no time of the target.
        """
        get = self.curl.getinfo
        seen = TransferResult(
            ended=ended,
            head=read_head(self.lines) if self.lines else None,
            body=self._body(),
            body_bytes=READ_LIMIT_BYTES - self.room,
            body_cut=self.body_cut,
            times=self._times(waited_s),
            address=get(pycurl.PRIMARY_IP) or self.tried,
            errno=self._errno(ended),
            refusal=self.refusal,
            **(self._tls_seen() if self.config.tls else {}),
        )
        self._reset()
        return seen

    def _times(self, waited_s: float) -> CurlTimings:
        times = CurlTimings(*[self.curl.getinfo(time) for time in _TIMES])
        if not waited_s:
            return times
        total = max(times.first_byte, times.total - int(waited_s * 1_000_000))
        return msgspec.structs.replace(times, total=total)

    def _tls_seen(self) -> dict[str, Any]:
        return {
            "tls_line": self.tls_line.decode("ascii", "replace"),
            "verify_result": self.curl.getinfo(pycurl.SSL_VERIFYRESULT),
            "chain": self._read_chain(),
            "wants_certificate": self.wants_certificate,
        }

    def _read_chain(self) -> tuple[bytes, ...]:
        if self.config.http_version is HttpVersion.HTTP_3:
            # As bytes: the other fields may hold any.
            return chain_of_info(self.curl.getinfo_raw(pycurl.INFO_CERTINFO))
        return read_chain(self.certificates)

    def _errno(self, ended: CurlResult) -> int:
        if not ended.code:
            return 0
        known: int = self.errno or self.curl.getinfo(pycurl.OS_ERRNO)
        return known or (find_shortage() if ended.code in _POSSIBLE_SHORTAGE else 0)

    def keep_in_one_piece(self) -> None:
        """Keep the body in one piece from now on, because it is long."""
        self.long_body = io.BytesIO()
        self.long_body.writelines(self.chunks)
        self.chunks.clear()

    def _body(self) -> bytes:
        if self.long_body is not None:
            return self.long_body.getvalue()
        chunks = self.chunks
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _reset(self) -> None:
        self.lines.clear()
        self.chunks.clear()
        self.long_body = None
        self.room = READ_LIMIT_BYTES
        self.body_cut = False
        self.tls_line = self.certificates = b""
        self.wants_certificate = False
        self.tried = ""
        self.refusal = None
        self.errno = 0
        self.ask_for_memory = _has_memory

    def _write_body(self, chunk: bytes) -> int | None:
        """Store a piece of the body; 0 makes libcurl stop, None goes on.

        A piece that waits for memory comes again.
        """
        room = self.room
        size = len(chunk)
        is_cut = size > room
        if is_cut:
            chunk, size = chunk[:room], room
        if room > self.keeps_above:
            if (refusal := self.ask_for_memory()) is not None:
                return refusal
            if self.long_body is None:
                self.chunks.append(chunk)
            else:
                self.long_body.write(chunk)
        self.room = room - size
        self.body_cut = is_cut
        return 0 if is_cut else None

    def _read_debug(self, kind: int, said: bytes) -> None:
        if kind == _TEXT:
            if said.startswith(_TLS_LINE):
                self.tls_line = said
        elif kind == _TLS_IN and said.startswith(CERTIFICATE_MESSAGES):  # one message in 25
            if is_certificate_message(said):
                self.certificates = said
            elif is_certificate_request(said):
                self.wants_certificate = True

    def _open_socket(self, _purpose: int, peer: Any) -> Any:
        """Open a socket for libcurl, unless the egress rules refuse the address."""
        self.tried = address = peer.addr[0]
        if self.refusal is None:
            self.refusal = self.refuses(self.host, address)
        if self.refusal is not None:
            return pycurl.SOCKET_BAD
        try:
            return _CopiedSocket(socket.socket(peer.family, peer.socktype, peer.protocol))
        except OSError as problem:
            self.errno = problem.errno or 0
            return pycurl.SOCKET_BAD


_LOOKUP_DESCRIPTORS: Final = 4
"""How many descriptors a name lookup needs."""


class _CopiedSocket:
    """A socket whose descriptor pycurl duplicates; dropping the object closes it."""

    def __init__(self, opened: socket.socket) -> None:
        self._opened = opened

    def __del__(self) -> None:
        self._opened.close()

    def fileno(self) -> int:
        """The descriptor that pycurl duplicates."""
        return self._opened.fileno()


def find_shortage() -> int:
    """Find the errno of a process that is out of descriptors; 0 when there are enough.

    libcurl does not distinguish a lookup or connect that failed for lack of descriptors from one
    that failed at the target.
    """
    held: list[int] = []
    try:
        held.extend(os.dup(2) for _ in range(_LOOKUP_DESCRIPTORS))
    except OSError as problem:
        return problem.errno or 0
    finally:
        for descriptor in held:
            os.close(descriptor)
    return 0
