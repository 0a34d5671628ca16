"""A folder of one run's own, for files that it brings back."""

import hashlib
import mimetypes
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

from contract.result import Artifact, ArtifactKind

_PREFIX: Final = "run-"


@dataclass(frozen=True, slots=True)
class RunFile:
    """An artifact, and where its file is."""

    path: Path
    artifact: Artifact


class Workspace:
    """Made on disk when it is first asked for: most runs need none."""

    __slots__ = ("_folder", "_within")

    def __init__(self, within: Path | None = None) -> None:
        """`within`: the folder in which to make it. None: the system's for temporary files."""
        self._within = within
        self._folder: Path | None = None
        """None: nobody has asked for it."""

    @property
    def is_made(self) -> bool:
        """Whether there is anything on disk."""
        return self._folder is not None

    @property
    def folder(self) -> Path:
        """Where the run may write.

        Raises:
            OSError: it cannot be made.
        """
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._within))
        return self._folder

    def artifact(self, name: str, kind: ArtifactKind) -> Artifact:
        """Describe a file of the folder; it blocks while it reads the file.

        Raises:
            OSError: it is not there, or is no plain file.
        """
        with open_plain(self.folder / name) as file:
            digest = hashlib.file_digest(file, hashlib.sha256)
            return Artifact(
                name=name,
                kind=kind,
                size_bytes=file.tell(),
                sha256=digest.hexdigest(),
                content_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
            )

    def remove(self) -> None:
        """Delete the folder with all that is left in it."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def open_plain(path: Path) -> BufferedReader:
    """Open a file of a run for reading; a run's own code must not lead us elsewhere by a link.

    Raises:
        OSError: it is not there, or is no plain file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is no plain file")
    return os.fdopen(handle, "rb")
