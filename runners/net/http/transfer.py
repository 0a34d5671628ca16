"""One transfer of libcurl: its options and its result."""

import io
import os
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import msgspec
import pycurl

from contract.requests import HttpVersion, IpFamily
from runners.net.http.content_coding import BodyDecoder, UndecodableError
from runners.net.http.curl_multi import FINE, CurlResult
from runners.net.http.request import SENDS_EMPTY_BODY, HopRequest
from runners.net.http.response import STORED_BYTES, Arrivals, BadStatusLineError, Head, read_head
from runners.net.tls.certificates import (
    CERTIFICATE_MESSAGES,
    chain_of_info,
    is_certificate_message,
    is_certificate_request,
    names_host,
    read_alternative_names,
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
_HTTP_2_LINES: Final = (b"received GOAWAY", b"HTTP/2 stream ")
"""How libcurl begins its lines on why a connection or stream of HTTP/2 ended."""
_HTTP_1_REQUIRED: Final = b"HTTP_1_1_REQUIRED"
_MULTIPLEXED: Final = frozenset({HttpVersion.HTTP_2, HttpVersion.HTTP_3})
_WEIRD_SERVER_REPLY: Final = 8
_PROCEED: Final[int] = pycurl.SOCKOPT_OK  # and PREREQFUNC_OK
_STOP: Final[int] = pycurl.SOCKOPT_ERROR
_PAUSE: Final[int] = pycurl.WRITEFUNC_PAUSE
_LENGTH_DIGITS: Final = 9
"""Longer lengths are beyond the read limit."""
_PARTIAL_CONTENT: Final = 206
_SWITCHING_PROTOCOLS: Final = 101
_OTHER_HOST: Final = CurlResult(pycurl.E_PEER_FAILED_VERIFICATION, "no alternative subject name")
"""What libcurl says of a certificate of another host."""


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
    header_lines: int = 0
    """How many header lines were received, those of interim responses included. This and what
    follows is reported of a transfer that failed, had no head or a body to decode."""
    is_arriving: bool = False
    """Whether parts of the response kept coming until the end."""
    bad_status_line: str | None = None
    """What the response begins with instead of a status line. None: it has one, or none began."""
    undecodable: str | None = None
    """Why the body is not in the coding that its header names. None: it is, or has none."""
    cut_coding: str | None = None
    """The coding within whose stream the body ends. None: it does not."""
    http_2_lines: tuple[bytes, ...] = ()
    """What libcurl says of the end of the connection or stream; empty unless by HTTP/2."""
    refused: bool = False
    """Whether the server refused the request unread, so that libcurl would have repeated it."""

    @property
    def requires_http_1(self) -> bool:
        """Whether the server wants the request by HTTP/1.1 instead of HTTP/2."""
        if self.head is not None:
            return False
        return any(_HTTP_1_REQUIRED in line for line in self.http_2_lines)


@dataclass(slots=True, eq=False)
class Transfer:
    """A handle and the fields that its callbacks write; used for many transfers."""

    config: HandleConfig
    roots_path: str
    refuses: Callable[[str, str], str | None]
    curl: Any = field(default_factory=pycurl.Curl)
    lines: list[bytes] = field(default_factory=list)
    arrivals: Arrivals = field(default_factory=Arrivals)
    chunks: list[bytes] = field(default_factory=list)
    long_body: io.BytesIO | None = None
    """A body that has taken memory; chunks would have to be joined. None: it is short so far."""
    ask_for_memory: Callable[[int], bool] | None = None
    """Called with the bytes that a long body may need; False pauses the transfer. None: bodies are
    kept without asking."""
    asks_below: int = 0
    """At less room than this, memory is asked for before more is kept."""
    waited_s: float = 0.0
    """How long the transfer was paused."""
    ahead_bytes: int = 0
    """How many bytes of the next piece were read before the pause: libcurl delivers them again."""
    undelivered: Iterable[bytes] = ()
    """What those bytes decode to, as far as it is not stored."""
    room: int = READ_LIMIT_BYTES
    keeps_above: int = 0
    """At this much room or less, the body is read and counted, but not kept."""
    body_cut: bool = False
    tls_line: bytes = b""
    certificates: bytes = b""
    """The server's Certificate message; empty: none was received."""
    wants_certificate: bool = False
    head: Head | None = None
    """None: no body has begun yet."""
    body_begun: bool = False
    bad_status_line: str | None = None
    decoder: BodyDecoder | None = None
    """None: the body is taken as it is."""
    undecodable: str | None = None
    switched: bool = False
    """Whether the server switched protocols, as it was asked to."""
    http_2_lines: list[bytes] = field(default_factory=list)
    was_sent: bool = False
    """Whether libcurl has begun to send the request."""
    refused: bool = False
    is_other_host: bool = False
    """Whether the certificate was refused for another host's, which libcurl had accepted."""
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
            (pycurl.HEADERFUNCTION, self._read_line),
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
            # Not to take such an answer, but to show what a peer says that does not speak HTTP.
            (pycurl.HTTP09_ALLOWED, 1),
            *_NO_PROXY,
            (pycurl.IPRESOLVE, _FAMILIES[config.family]),
            (pycurl.HTTP_VERSION, _VERSIONS[config.http_version]),
        ]
        if config.tls:
            settings += self._tls_settings()
        if config.guarded:
            settings.append((pycurl.OPENSOCKETFUNCTION, self._open_socket))
        if config.tls or config.http_version in _MULTIPLEXED:
            # Version and cipher, and the end of HTTP/2, are reported in this way only, and the
            # chain most cheaply: OPT_CERTINFO prints every field of it, for 6 % of an exchange.
            settings += [(pycurl.DEBUGFUNCTION, self._read_debug), (pycurl.VERBOSE, 1)]
            # libcurl sends a request again, up to five times, when a server of HTTP/2 or HTTP/3
            # refuses it, and has no option against it.
            settings += [
                (pycurl.PREREQFUNCTION, self._before_request),
                (pycurl.SOCKOPTFUNCTION, self._refuse_repeat),
            ]
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
        ]

    def prepare(self, hop: HopRequest, *, timeout_ms: int, keep_bytes: int) -> None:
        """Set what differs from hop to hop."""
        self.keeps_above = READ_LIMIT_BYTES - keep_bytes
        self.host = hop.origin.host
        set_option = self.curl.setopt
        set_option(pycurl.URL, hop.url)
        set_option(pycurl.TIMEOUT_MS, timeout_ms)
        set_option(pycurl.HTTPHEADER, hop.header_lines)

    def limit_memory(self, ask_for_memory: Callable[[int], bool]) -> None:
        """Ask for memory before more of a body is kept than any result carries."""
        self.ask_for_memory = ask_for_memory
        self.asks_below = READ_LIMIT_BYTES - STORED_BYTES

    def prepare_method(self, hop: HopRequest) -> None:
        """Set method and body; a plain GET without a body needs neither."""
        set_option = self.curl.setopt
        if hop.asks_to_upgrade:
            set_option(pycurl.HEADERFUNCTION, self._read_line_of_upgrade)
        if hop.method == "HEAD":
            set_option(pycurl.NOBODY, 1)
            set_option(pycurl.HTTP09_ALLOWED, 0)  # libcurl would take it for an empty answer
            return
        if hop.body is not None or hop.method in SENDS_EMPTY_BODY:
            set_option(pycurl.POSTFIELDS, hop.body or b"")
        set_option(pycurl.CUSTOMREQUEST, hop.method)

    def collect(self, ended: CurlResult) -> TransferResult:
        """Collect the result, and make the handle ready for the next transfer."""
        get = self.curl.getinfo
        if self._is_other_host():
            ended = _OTHER_HOST
            self._forget_answer()
        head = self.head or self._read_head()
        if ended.code and self._is_whole(ended):
            ended = FINE
        is_plain = head is not None and not ended.code and self.decoder is None
        seen = TransferResult(
            ended=ended,
            head=head,
            body=self._body(),
            body_bytes=READ_LIMIT_BYTES - self.room,
            body_cut=self.body_cut,
            times=self._times(),
            address=get(pycurl.PRIMARY_IP) or self.tried,
            errno=self._errno(ended),
            refusal=self.refusal,
            **(self._tls_seen() if self.config.tls else {}),
            **({} if is_plain else self._flaws(ended)),
        )
        self._reset()
        return seen

    def _times(self) -> CurlTimings:
        """When each phase ended, without the time for which the transfer was paused."""
        times = CurlTimings(*[self.curl.getinfo(time) for time in _TIMES])
        if not self.waited_s:
            return times
        total = max(times.first_byte, times.total - int(self.waited_s * 1_000_000))
        return msgspec.structs.replace(times, total=total)

    def _flaws(self, ended: CurlResult) -> dict[str, Any]:
        return {
            "header_lines": len(self.lines),
            "is_arriving": self.arrivals.are_going_on(time.monotonic()),
            "bad_status_line": self.bad_status_line,
            "undecodable": self.undecodable,
            "cut_coding": self._cut_coding(ended),
            "http_2_lines": tuple(self.http_2_lines),
            "refused": self.refused,
        }

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

    def _body(self) -> bytes:
        if self.long_body is not None:
            return self.long_body.getvalue()
        chunks = self.chunks
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _reset(self) -> None:
        self._forget_answer()
        self.tls_line = self.certificates = b""
        self.wants_certificate = self.is_other_host = False
        self.tried = ""
        self.refusal = None
        self.errno = 0
        self.ask_for_memory = None
        self.asks_below = 0
        self.waited_s = 0.0

    def _forget_answer(self) -> None:
        self.lines.clear()
        self.arrivals = Arrivals()
        self.chunks.clear()
        self.long_body = None
        self.ahead_bytes, self.undelivered = 0, ()
        self.room = READ_LIMIT_BYTES
        self.body_cut = False
        self.head = self.decoder = self.bad_status_line = self.undecodable = None
        self.body_begun = self.switched = self.was_sent = self.refused = False
        self.http_2_lines.clear()

    def _read_head(self) -> Head | None:
        """The head of the response; what follows the beginning of its body are trailers."""
        if self.head is None and self.lines and self.bad_status_line is None:
            try:
                self.head = read_head(self.lines)
            except BadStatusLineError as problem:
                self.bad_status_line = str(problem)
        return self.head

    def _is_whole(self, ended: CurlResult) -> bool:
        """Whether the response is whole, whatever libcurl calls it.

        After the body of a response of HTTP/1 come trailers only, which are left out; libcurl
        cannot read those that are folded.
        """
        if self.body_cut or self.switched:
            return True
        head = self.head
        in_trailers = head is not None and head.is_complete and head.http_version.startswith("1")
        return in_trailers and ended.code == _WEIRD_SERVER_REPLY

    def _cut_coding(self, ended: CurlResult) -> str | None:
        """The coding within whose stream the body ends; a part of a body may end anywhere."""
        head, decoder = self.head, self.decoder
        if decoder is None or head is None or ended.code or self.body_cut:
            return None
        return None if head.status_code == _PARTIAL_CONTENT else decoder.cut_coding

    def _read_line(self, line: bytes) -> None:
        self.lines.append(line)
        self.arrivals.note()

    def _read_line_of_upgrade(self, line: bytes) -> int | None:
        """Store a header line; what follows a switch of protocols is not HTTP's, and not read."""
        self._read_line(line)
        if line.strip():
            return None
        head = self._read_head()
        self.switched = head is not None and head.status_code == _SWITCHING_PROTOCOLS
        if self.switched:
            return -1
        self.head = None  # another may follow, as after a challenge
        return None

    def _write_body(self, piece: bytes) -> int | None:
        """Store a piece of the body, decoded; 0 makes libcurl stop, None goes on.

        A piece in which the transfer paused comes again, perhaps with more bytes behind it.
        """
        self.arrivals.note()
        if not self.body_begun:
            self.body_begun = True
            if not self.lines:
                self.bad_status_line = piece.partition(b"\n")[0].decode("utf-8", "replace").rstrip()
                return 0
            head = self._read_head()
            if head is not None and "content-encoding" in head.headers:
                self.decoder = BodyDecoder.choose(head.headers["content-encoding"])
        if self.decoder is None:
            return self._store(piece)
        fresh = piece[self.ahead_bytes :]
        try:
            parts = chain(self.undelivered, self.decoder.decode(fresh) if fresh else ())
            self.ahead_bytes, self.undelivered = 0, ()
            for part in parts:
                answer = self._store(part)
                if answer == _PAUSE:
                    self.ahead_bytes, self.undelivered = len(piece), chain((part,), parts)
                if answer is not None:
                    return answer
        except UndecodableError as problem:
            self.undecodable = str(problem)
            return 0
        return None

    def _store(self, chunk: bytes) -> int | None:
        room = self.room
        size = len(chunk)
        is_cut = size > room
        if is_cut:
            chunk, size = chunk[:room], room
        if room - size < self.asks_below and not self._takes_memory():
            return _PAUSE
        if room > self.keeps_above:
            if self.long_body is None:
                self.chunks.append(chunk)
            else:
                self.long_body.write(chunk)
        self.room = room - size
        self.body_cut = is_cut
        return 0 if is_cut else None

    def _takes_memory(self) -> bool:
        """Whether there is memory for a body that turns out to be long."""
        if self.ask_for_memory is not None and not self.ask_for_memory(self._expected_bytes()):
            return False
        self.asks_below = 0
        self.long_body = io.BytesIO()
        self.long_body.writelines(self.chunks)
        self.chunks.clear()
        return True

    def _expected_bytes(self) -> int:
        """How long the body can become: its length, if that is known, or the read limit.

        A length that the body has exceeded already says nothing.
        """
        headers = {} if self.head is None else self.head.headers
        length = headers.get("content-length", "")
        if self.decoder is not None or "transfer-encoding" in headers or not length.isdecimal():
            return READ_LIMIT_BYTES
        length_bytes = int(length[:_LENGTH_DIGITS])
        is_true = length_bytes > STORED_BYTES
        return min(length_bytes, READ_LIMIT_BYTES) if is_true else READ_LIMIT_BYTES

    def _read_debug(self, kind: int, said: bytes) -> None:
        if kind == _TEXT:
            if said.startswith(_TLS_LINE):
                self.tls_line = said
            elif said.startswith(_HTTP_2_LINES):
                self.http_2_lines.append(said)
        elif kind == _TLS_IN and said.startswith(CERTIFICATE_MESSAGES):  # one message in 25
            if is_certificate_message(said):
                self.certificates = said
            elif is_certificate_request(said):
                self.wants_certificate = True

    def _before_request(self, *_addresses: Any) -> int:
        """Note that a request is sent, or refuse a certificate that does not name the host."""
        config = self.config
        if config.tls and config.verify and config.http_version is not HttpVersion.HTTP_3:
            self.is_other_host = self._names_another_host()
        self.was_sent = not self.is_other_host
        return _PROCEED if self.was_sent else _STOP

    def _refuse_repeat(self, _fd: int, _purpose: int) -> int:
        """Refuse a further connection for a request that was sent, and got no answer at all."""
        if not self.was_sent or self.lines:
            return _PROCEED
        self.refused = True
        return _STOP

    def _is_other_host(self) -> bool:
        config = self.config
        if config.http_version is HttpVersion.HTTP_3 and config.tls and config.verify:
            # Over QUIC the chain can only be read now, when the answer is there.
            return self._names_another_host()
        return self.is_other_host

    def _names_another_host(self) -> bool:
        names = read_alternative_names(next(iter(self._read_chain()), b""))
        # What cannot be read here is left to libcurl's own judgement.
        return names is not None and not names_host(names, self.host)

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
