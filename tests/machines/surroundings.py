"""What a machine inside needs of the one around it to reach the same package registries.

Nothing here names a host: settings are passed on as they are found. A setting that names a file
or a folder of this machine is rewritten to where that is mounted inside, read-only.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_INSIDE: Final = Path("/mnt/surroundings")
"""Not where it lies outside: a bare machine must not seem to have roots of trust, or packages."""

_PASSED_ON: Final = re.compile(
    r"(PIP|UV|NPM_CONFIG)_\w+|\w+_PROXY"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS",
    re.IGNORECASE,
)
_WRITTEN_TO: Final = re.compile(r"CACHE|PREFIX|TARGET|PROJECT|TOOL|INSTALL|LOG", re.IGNORECASE)
"""In the name of a setting for a folder that the program writes to: not ours to lend."""

_SYSTEM_FILES: Final = ("/etc/pip.conf", "/etc/npmrc", "/etc/uv/uv.toml")
_HOME_FILES: Final = (".config/pip/pip.conf", ".pip/pip.conf", ".npmrc", ".config/uv/uv.toml")
_APT: Final = re.compile(r"Acquire::(?:https?|ftp|Check-|Retries|Force|AllowInsecure)\S* ")

_LOCAL_PATH: Final = re.compile(r"""(?:(?<=file://)|(?<![^\s='"]))/[^\s'",;]+""")
"""After `file://`, or where a value begins: no part of a web address."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Settings and files of the machine around, as they hold inside."""

    environ: Mapping[str, str]
    """For each program that runs inside."""
    system_files: Mapping[str, str]
    """Texts by their absolute path."""
    home_files: Mapping[str, str]
    """Texts by their path in a user's home."""
    mounts: Mapping[Path, Path]
    """Where a file or folder of this machine is mounted inside."""

    def write_system_files(self, root: Path) -> None:
        """Make the root reach what this machine reaches."""
        for path, text in self.system_files.items():
            _write(root / path.removeprefix("/"), text)

    def write_home_files(self, root: Path, home: str, uid: int) -> None:
        """Give a user of the root the settings that this one has at home."""
        for path, text in self.home_files.items():
            file = root / home.removeprefix("/") / path
            _write(file, text)
            file.chmod(0o600)
        for entry in (root / home.removeprefix("/")).rglob("*"):
            os.chown(entry, uid, uid, follow_symlinks=False)


def look_around(environ: Mapping[str, str], home: Path) -> Surroundings:
    """Collect what programs here use to reach package registries."""
    mounts: dict[Path, Path] = {}
    settings = {
        name: lend(value, mounts)
        for name, value in environ.items()
        if _PASSED_ON.fullmatch(name) and not _WRITTEN_TO.search(name)
    }
    system = {path: lend(text, mounts) for path, text in _texts(Path("/"), _SYSTEM_FILES)}
    own = {path: lend(text, mounts) for path, text in _texts(home, _HOME_FILES)}
    system |= {
        "/etc/resolv.conf": Path("/etc/resolv.conf").read_text(),
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n",
        "/etc/apt/apt.conf.d/90surroundings": lend(_apt_settings(), mounts),
    }
    return Surroundings(settings, system, own, mounts)


def lend(text: str, mounts: dict[Path, Path]) -> str:
    """The text with each path of this machine replaced by its mount, which is noted."""

    def inside(found: re.Match[str]) -> str:
        path = Path(found[0])
        # `/usr` and its like are settings of every machine.
        if len(path.parts) < 3 or not path.exists():
            return found[0]
        is_url = found.string.endswith("file://", 0, found.start())
        # The pages of a package index lead to files beside it.
        lent = path.parent if is_url and len(path.parts) > 3 else path
        mounts[lent.resolve()] = _INSIDE / lent.relative_to("/")
        return str(_INSIDE / path.relative_to("/"))

    return _LOCAL_PATH.sub(inside, text)


def mirror_of(sources: Iterable[str], release: str | None) -> str | None:
    """The mirror that files of apt's sources name for a release of Debian, and so for all."""
    uris = [uri for text in sources for uri, suites in _entries(text) if release in suites]
    return uris[0] if uris else None


def apt_sources() -> list[str]:
    """The texts of apt's sources here, in both of their forms."""
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return [
        file.read_text()
        for file in files
        if file.suffix in {".list", ".sources"} and file.is_file()
    ]


def _entries(text: str) -> list[tuple[str, list[str]]]:
    one_line = re.findall(r"^deb (?:\[[^]]*\] )?(\S+) (\S+)", text, re.MULTILINE)
    return [(uri, [suite]) for uri, suite in one_line] + [
        (uris.split()[0], suites.split())
        for stanza in re.split(r"\n\s*\n", text)
        for uris in re.findall(r"^URIs: *(.+)$", stanza, re.MULTILINE)
        for suites in re.findall(r"^Suites: *(.+)$", stanza, re.MULTILINE)
    ]


def _apt_settings() -> str:
    if shutil.which("apt-config") is None:
        return ""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return "".join(line for line in dump.splitlines(keepends=True) if _APT.match(line))


def _texts(folder: Path, paths: Iterable[str]) -> list[tuple[str, str]]:
    return [(path, (folder / path).read_text()) for path in paths if (folder / path).is_file()]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_text(text)
