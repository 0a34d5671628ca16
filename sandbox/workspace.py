"""What one run has of its own: a folder for files, and secrets that it came upon."""

import contextlib
import fcntl
import hashlib
import mimetypes
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from typing import Final

from contract.result import Artifact, ArtifactKind
from redaction.policy import TypedTexts, usable

PREFIX: Final = "picket-run-"
"""Of all runs' folders: by it they are found again after a kill of the agent."""
FILES: Final = "picket-files-"
"""Of folders of files that no disk keeps."""
ROOTS: Final = "picket-roots-"
"""Of folders in which Chromium's roots are being put together."""
HARNESSES: Final = "picket-harness-"
"""Of copies of our own code that the users of runs can read."""
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - only folders of ours are made there
PREFIXES: Final = (PREFIX, FILES, ROOTS, HARNESSES)
_MOST_LOOKS: Final = 1000
_MOST_NAMES: Final = 1000
_NAME_CHARS: Final = 16
_FACTS_CUT: Final = (
    "the run told more than is heard, and may have set secrets that nobody knows, "
    "so neither its texts nor its files could be searched for all"
)
UNLOCKED: Final = "new-"
"""Stands before that until the folder is locked, so that nobody takes it for a deserted one."""


class Look(StrEnum):
    """What a look at a page told as a picture of it was taken."""

    NONE = "none"
    """Nobody looked, or it is no picture."""
    UNSHOWING = "unshowing"
    """No text on it held a secret of the run."""
    MASKED = "masked"
    """The same, for masks lie over those that did."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """An artifact, and where its file is."""

    path: Path
    artifact: Artifact
    look: Look = Look.NONE
    """At the page, as this picture was taken."""


class Workspace:
    """Its folder is made on disk when it is first asked for: most runs need none."""

    __slots__ = (
        "_folder",
        "_lock",
        "_looks",
        "_prefix",
        "_shown",
        "_typed",
        "_within",
        "secrets",
        "unsearchable_because",
        "user",
    )

    def __init__(self, within: Path | None = None, *, prefix: str = PREFIX) -> None:
        """`within`: the folder in which to make it. None: the system's for temporary files.

        `prefix`: of its name, one of those that are swept.
        """
        self._within = within
        self._prefix = prefix
        self._folder: Path | None = None
        """None: nobody has asked for it."""
        self._lock: int | None = None
        """Held as long as the folder is in use; the system lets it go when we are killed. None:
        nobody has asked for the folder."""
        self.secrets: tuple[str, ...] = ()
        """Values that turned out to be secret; what the run brings back is searched for them."""
        self.unsearchable_because: str | None = None
        """Why the run may hold secrets that nobody knows, as a sentence without its end. None: all
        are known."""
        self._typed: TypedTexts | None = None
        """What was typed letter by letter. None: nothing."""
        self._shown: tuple[str, ...] = ()
        """Those that its scripts were given."""
        self._looks: dict[str, dict[str, Look]] = {}
        """By the digests of pictures: by the names of secrets, how it is known that the picture
        shows none of them."""
        self.user: int | None = None
        """Whose programs may write in its subfolders now. None: nobody's, or those of the agent's
        own user."""

    def keep_secret(self, value: str) -> None:
        """This must not be seen in what the run brings back."""
        if value not in self.secrets:
            self.secrets += (value,)

    def miss_secrets(self, because: str) -> None:
        """The run has secrets that nobody knows: what could hold them must not leave."""
        self.unsearchable_because = because

    def miss_facts(self) -> None:
        """Not all that the run told of itself was heard."""
        self.miss_secrets(_FACTS_CUT)

    def show(self, secrets: tuple[str, ...]) -> None:
        """The run's scripts are given these."""
        self._shown = secrets

    @property
    def in_sight(self) -> tuple[str, ...]:
        """All that its scripts know, so that their pages may show it."""
        return usable((*self._shown, *self.secrets))

    def keep_typed(self, process: int, text: str | None) -> None:
        """A process of the run typed this letter by letter. None: nobody heard what it was."""
        self._typed = self._typed or TypedTexts()
        if text is None:
            self._typed.note_unknown()
        else:
            self._typed.note(process, text)

    def typed_among(self, secrets: Iterable[str]) -> tuple[str, ...]:
        """Which of these secrets were typed letter by letter, or their beginnings were."""
        return () if self._typed is None else self._typed.among(secrets)

    def keep_picture(self, sha256: str, *, is_masked: bool, knew: tuple[str, ...]) -> None:
        """The text on the picture with this digest shows none of the secrets with these names.

        Only who knows the picture and a secret can tell its name (`name_of`).
        """
        if len(self._looks) < _MOST_LOOKS:
            look = Look.MASKED if is_masked else Look.UNSHOWING
            self._looks.setdefault(sha256, {}).update(dict.fromkeys(knew[:_MOST_NAMES], look))

    def file_of(self, artifact: Artifact) -> RunFile:
        """Where the artifact's file is, and what is known of it."""
        return RunFile(self.folder / artifact.name, artifact, self._look_at(artifact.sha256))

    def _look_at(self, sha256: str) -> Look:
        """One that did not look for every secret of the scripts is none."""
        known = self._looks.get(sha256, {})
        looks = {known.get(name_of(secret, sha256), Look.NONE) for secret in self.in_sight}
        if not looks or Look.NONE in looks:
            return Look.NONE
        return Look.UNSHOWING if Look.UNSHOWING in looks else Look.MASKED

    @property
    def is_made(self) -> bool:
        """Whether there is anything on disk."""
        return self._folder is not None

    @property
    def folder(self) -> Path:
        """The run's own; what its script is to write goes into subfolders.

        These are there before it starts: a script with a user of its own owns them, and may only
        pass the folder itself.

        Raises:
            OSError: it cannot be made.
        """
        if self._folder is None:
            made = Path(tempfile.mkdtemp(prefix=UNLOCKED + self._prefix, dir=self._within))
            self._lock = _lock(made)
            self._folder = made.rename(made.with_name(made.name.removeprefix(UNLOCKED)))
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

    def holds(self, path: Path) -> bool:
        """Whether a path is the run's own all the way: its script may have put links on it.

        To be asked when nothing of the run's is running any more.
        """
        folder = self.folder.resolve()
        return path.resolve() == folder / path.relative_to(self.folder)

    def remove(self) -> None:
        """Delete the folder with all that is left in it."""
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def name_of(secret: str, sha256: str) -> str:
    """What whoever looked at the picture with this digest calls a secret."""
    named = (sha256 + secret).encode("utf-8", "replace")
    return hashlib.sha256(named).hexdigest()[:_NAME_CHARS]


@contextlib.contextmanager
def temporary_folder(within: Path | None = None, *, prefix: str = PREFIX) -> Iterator[Path]:
    """A folder that goes after the block, whatever was put into it; it blocks.

    Killed within it, we leave it as a run leaves its own: the next agent's start finds it deserted.

    Raises:
        OSError: it cannot be made.
    """
    place = Workspace(within, prefix=prefix)
    try:
        yield place.folder
    finally:
        place.remove()


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


def is_deserted(folder: Path) -> bool:
    """Whether a run's folder is of an agent that is no more; no, where locks do not work."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _lock(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


_ROOT: Final = 0


def remove_folder(folder: Path) -> None:
    """Delete a folder with all that is in it, as far as the system lets us; it blocks."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        if os.path.lexists(folder):
            _remove_by_force(folder)


def clear_place(path: Path) -> None:
    """Delete whatever stands there; a link, but not what it leads to; it blocks.

    Raises:
        OSError: it is no folder and cannot be deleted.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    elif path.exists():
        remove_folder(path)


def _remove_by_force(folder: Path) -> None:
    # Python goes down by one call per level and opens no closed folder; these do.
    for uid in _other_owners(folder):
        # A folder with the sticky bit is emptied by its owner, or with a capability that we
        # do without. Files of yet others stay theirs: a second name of one may be here.
        _run("chown", "-R", "-h", f"--from={uid}", str(os.geteuid()), "--", str(folder))
    _run("chmod", "-R", "u+rwX", "--", str(folder))
    _run("rm", "-rf", "--one-file-system", "--", str(folder))


def _other_owners(folder: Path) -> list[int]:
    """Whose folders are among these, beside ours, where we may take them over."""
    if os.geteuid() != _ROOT:
        return []
    not_ours = ("!", "-uid", str(os.geteuid()), "-printf", r"%U\n")
    found = _run("find", str(folder), "-xdev", "-type", "d", *not_ours)
    return sorted({int(uid) for uid in found.split()})


def _run(tool: str, *arguments: str) -> bytes:
    """What one of the system's own tools said."""
    done = subprocess.run(  # noqa: S603 -- the system's own
        [shutil.which(tool) or tool, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return done.stdout
