"""The roots that the operator trusts beyond those that Node and Chromium bring along."""

import base64
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from runners.kit.http.roots import NoRootsError, system_bundle

DISTRIBUTIONS: Final = Path("/usr/share/ca-certificates")
"""Where Debian and its relatives keep the roots that everybody gets."""


def further_roots(extra: Path | None, *, distributions: Path = DISTRIBUTIONS) -> str | None:
    """Those of EXTRA_CA_CERTS, and those that were added to the system's bundle; PEM. None: none.

    curl, OpenSSL and Python trust what `update-ca-certificates` or a mounted bundle added; Node
    and Chromium bring roots of their own and look at neither. Where the distribution does not tell
    which of the bundle are its own, EXTRA_CA_CERTS alone counts.

    Raises:
        OSError: a file cannot be read.
    """
    given = "" if extra is None else extra.read_text()
    known = {*_ders(given), *_of_the_distribution(distributions)}
    added = _system_pem() if distributions.is_dir() else ""
    beyond = [der for der in dict.fromkeys(_ders(added)) if der not in known]
    pems = [given.strip(), *(ssl.DER_cert_to_PEM_cert(der).strip() for der in beyond)]
    return "\n".join(filter(None, pems)) + "\n" if any(pems) else None


def _system_pem() -> str:
    try:
        return system_bundle().read_text(errors="replace")
    except NoRootsError:
        return ""


def _of_the_distribution(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*.crt"):
        yield from _ders(path.read_text(errors="replace"))


def _ders(pem: str) -> Iterator[bytes]:
    for piece in pem.split(ssl.PEM_FOOTER)[:-1]:
        start = piece.rfind(ssl.PEM_HEADER)
        with suppress(ValueError):  # no base64: whoever else reads it leaves it aside as well
            if start >= 0:
                body = "".join(piece[start + len(ssl.PEM_HEADER) :].split())
                yield base64.b64decode(body, validate=True)
