"""Further roots: read, checked, and laid out for Node and Chromium."""

import base64
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfile, rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING, Final

from runners.net.tls.ca_roots import NoRootsError, system_bundle
from runners.scripting.trust.nss_database import UNUSABLE
from sandbox.workspace import ROOTS, SHARED_MEMORY, Workspace, temporary_folder

if TYPE_CHECKING:
    from runners.net.tls.local_authority import LocalAuthority

_BUILDER: Final = Path(__file__).with_name("nss_database.py")
_BUILD_LIMIT_S: Final = 120.0
_IN_HOME: Final = Path(".pki/nssdb")
"""Where Chromium looks for its NSS database, within its home."""


class Roots:
    """A set of roots; its NSS database is made for the first browser that needs it."""

    def __init__(
        self, folder: Path, pem: str, *, authority: "LocalAuthority | None" = None
    ) -> None:
        """`folder`: outlives this object, and is readable for the users of all runs."""
        self.authority: Final = authority
        """The local authority among the roots. None: there is none."""
        self._folder = folder
        self._pem = pem
        self._lock = Lock()
        self._database: Path | None = None
        """The folder of the database. None: it was not needed yet, or cannot be made."""
        self._problem: str | None = None
        """Why the database can never be made. None: no reason is known."""
        self.file: Path | None = None
        """The PEM file for Node, readable for all. None: Node's own roots are enough."""
        if pem:
            self.file = Path(mkdtemp(prefix="roots-", dir=folder)) / "roots.pem"
            self.file.write_text(pem)
            self.file.chmod(0o644)
            self.file.parent.chmod(0o711)

    @property
    def environment(self) -> dict[str, str]:
        """The variable by which Node trusts the roots."""
        return {} if self.file is None else {"NODE_EXTRA_CA_CERTS": str(self.file)}

    def install_in(self, home: Path) -> str | None:
        """Copy the database into a home, so that Chromium trusts the roots; it blocks.

        Return why Chromium cannot trust them, as a sentence. None: it does, or there are no roots.

        Raises:
            OSError: the disk fails, or the database cannot be made now; the next run tries again.
        """
        if not self._pem:
            return None
        with self._lock:
            if self._database is None and self._problem is None:
                self._make()
        if self._database is None:
            return self._problem
        place = home / _IN_HOME
        place.mkdir(parents=True)
        for path in self._database.iterdir():
            copyfile(path, place / path.name)
        return None

    def _make(self) -> None:
        place = Path(mkdtemp(prefix="nssdb-", dir=self._folder))
        try:
            self._problem = build_database(self._pem, place)
        except OSError:
            rmtree(place, ignore_errors=True)
            raise
        self._database = place if self._problem is None else None


class Trust:
    """The roots of this process: those of all runs, and those of runs with client certificates."""

    def __init__(self, folder: Path, pem: str) -> None:
        """`folder`: outlives this object, and is readable for the users of all runs."""
        self._folder = folder
        self._pem = pem
        self._lock = Lock()
        self._presenting: Roots | None = None
        """The roots with the local authority. None: no run needed them yet."""
        self.plain: Final = Roots(folder, pem)

    def roots(self, *, presents: bool) -> Roots:
        """Return the roots of a run; one that `presents` certificates trusts a local authority too.

        The first such call blocks while it makes that authority.
        """
        if not presents:
            return self.plain
        # Imported here: it costs 10 MB and 50 ms, and few agents have client certificates.
        from runners.net.tls.local_authority import LocalAuthority  # noqa: PLC0415

        with self._lock:
            if self._presenting is None:
                authority = LocalAuthority()
                pem = f"{self._pem}{authority.pem}"
                self._presenting = Roots(self._folder, pem, authority=authority)
            return self._presenting


def build_database(pem: str, place: Path) -> str | None:
    """Make Chromium's database of roots in a folder; it blocks.

    Return why it can never be made, as a sentence. None: it is made.

    Raises:
        OSError: it cannot be made now, which is our fault.
    """
    try:
        # Each root is synced: that takes 50 ms on a disk, and 1 ms in shared memory.
        return _build(pem, place, within=SHARED_MEMORY)
    except TimeoutError:
        raise
    except OSError:
        # Scripts can fill shared memory, which has 64 MB in a container.
        return _build(pem, place, within=place)


def _build(pem: str, place: Path, *, within: Path) -> str | None:
    with temporary_folder(within, prefix=ROOTS) as built:
        done = _run_builder(pem, built)
        why = done.stderr.strip().rpartition("\n")[2] or f"its exit code was {done.returncode}"
        if done.returncode == UNUSABLE:
            return f"Chromium does not trust the further roots of this location: {why}."
        if done.returncode != 0:
            raise OSError(f"Chromium's database of roots cannot be created now: {why}.")
        for path in built.iterdir():
            copyfile(path, place / path.name)
    return None


def _run_builder(pem: str, folder: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - a program of ours
            [sys.executable, "-I", str(_BUILDER), str(folder)],
            input=pem,
            env={},
            text=True,
            capture_output=True,
            check=False,
            timeout=_BUILD_LIMIT_S,
        )
    except subprocess.TimeoutExpired as problem:
        late = f"Making Chromium's database of roots did not end in {_BUILD_LIMIT_S:g} s."
        raise TimeoutError(late) from problem


@contextmanager
def open_trust(extra: Path | None) -> Iterator[Trust]:
    """Open the roots for the block; `extra`: the file of EXTRA_CA_CERTS. None: it is not set.

    Raises:
        OSError: the roots cannot be read, or nothing can be written.
    """
    kept = Workspace()
    try:
        kept.folder.chmod(0o711)
        yield Trust(kept.folder, read_further_roots(extra) or "")
    finally:
        kept.remove()


DISTRIBUTIONS: Final = Path("/usr/share/ca-certificates")
"""Where Debian and its derivatives keep the roots of the distribution."""


def read_further_roots(extra: Path | None, *, distributions: Path = DISTRIBUTIONS) -> str | None:
    """Read the roots of EXTRA_CA_CERTS and those added to the system's bundle, as PEM. None: none.

    curl, OpenSSL and Python trust what `update-ca-certificates` or a mounted bundle added; Node
    and Chromium have roots of their own and read neither. Where the roots of the distribution are
    not known, only EXTRA_CA_CERTS counts.

    Raises:
        OSError: a file cannot be read.
    """
    given = "" if extra is None else extra.read_text()
    known = {*_split_ders(given), *_read_distribution_ders(distributions)}
    added = _read_system_pem() if distributions.is_dir() else ""
    beyond = [der for der in dict.fromkeys(_split_ders(added)) if der not in known]
    pems = [given.strip(), *(ssl.DER_cert_to_PEM_cert(der).strip() for der in beyond)]
    return "\n".join(filter(None, pems)) + "\n" if any(pems) else None


def _read_system_pem() -> str:
    try:
        return system_bundle().read_text(errors="replace")
    except NoRootsError:
        return ""


def _read_distribution_ders(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*.crt"):
        yield from _split_ders(path.read_text(errors="replace"))


def _split_ders(pem: str) -> Iterator[bytes]:
    for piece in pem.split(ssl.PEM_FOOTER)[:-1]:
        start = piece.rfind(ssl.PEM_HEADER)
        with suppress(ValueError):  # no base64: other programs skip it as well
            if start >= 0:
                body = "".join(piece[start + len(ssl.PEM_HEADER) :].split())
                yield base64.b64decode(body, validate=True)
