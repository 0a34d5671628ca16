"""The workspace of one run: its folder, and the secrets that its scripts added."""

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
from redaction.policy import TypedTexts, select_usable

PREFIX: Final = "picket-run-"
"""Starts the name of every run's folder, so that a sweep finds those of a killed agent."""
FILES: Final = "picket-files-"
"""Starts the names of folders for files in shared memory, which no disk keeps."""
ROOTS: Final = "picket-roots-"
"""Starts the names of folders in which Chromium's root database is built."""
HARNESSES: Final = "picket-harness-"
"""Starts the names of folders with copies of the harness that slot users can read."""
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - only folders of ours are made there
PREFIXES: Final = (PREFIX, FILES, ROOTS, HARNESSES)
_MOST_REVIEWS: Final = 1000
_MOST_NAMES: Final = 1000
_NAME_CHARS: Final = 16
_FACTS_CUT: Final = (
    "the run reported more than is read, and may have set unknown secrets, "
    "so its texts and files could not be searched for all secrets"
)
UNLOCKED: Final = "new-"
"""Precedes the name until the folder is locked, so that no sweep takes it for an abandoned one."""


class ScreenshotReview(StrEnum):
    """Whether a page showed secrets of its run when a screenshot of it was taken."""

    UNREVIEWED = "none"
    """The page was not searched, or the file is no screenshot."""
    NO_SECRETS = "unshowing"
    """No text on the page held a secret of the run."""
    MASKED = "masked"
    """Masks cover every text on the page that held a secret of the run."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """An artifact and the path of its file."""

    path: Path
    artifact: Artifact
    review: ScreenshotReview = ScreenshotReview.UNREVIEWED
    """How the page was searched for secrets when this screenshot was taken."""


class Workspace:
    """The folder and the secrets of one run; the folder is made when it is first needed."""

    __slots__ = (
        "_folder",
        "_given_secrets",
        "_lock",
        "_prefix",
        "_reviews",
        "_typed",
        "_within",
        "secrets",
        "unsearchable_because",
        "user",
    )

    def __init__(self, within: Path | None = None, *, prefix: str = PREFIX) -> None:
        """`within`: the folder in which to make the run's own. None: the system's temporary folder.

        `prefix`: starts the folder's name; one of `PREFIXES`, which are swept.
        """
        self._within = within
        self._prefix = prefix
        self._folder: Path | None = None
        """None: no folder was needed yet."""
        self._lock: int | None = None
        """A lock on the folder, which the kernel releases when the agent is killed. None: no folder
        was needed yet."""
        self.secrets: tuple[str, ...] = ()
        """Values that scripts marked as secret; redaction removes them from the run's results."""
        self.unsearchable_because: str | None = None
        """Why the run may hold secrets that nobody knows, as a sentence without a full stop. None:
        all are known."""
        self._typed: TypedTexts | None = None
        """Texts that scripts typed letter by letter. None: they typed none."""
        self._given_secrets: tuple[str, ...] = ()
        """The secrets among the variables that its scripts got."""
        self._reviews: dict[str, dict[str, ScreenshotReview]] = {}
        """The review of each screenshot, by its SHA-256, then by the digest of the secret that was
        looked for."""
        self.user: int | None = None
        """The user whose programs may write in the subfolders now. None: no program runs, or it
        runs as the agent's own user."""

    def add_secret(self, value: str) -> None:
        """Add a value that redaction has to remove from the run's results."""
        if value not in self.secrets:
            self.secrets += (value,)

    def mark_unsearchable(self, because: str) -> None:
        """Note that the run has unknown secrets: what could hold them must not leave the agent."""
        self.unsearchable_because = because

    def mark_facts_lost(self) -> None:
        """Note that facts of the run were dropped, which may have named secrets."""
        self.mark_unsearchable(_FACTS_CUT)

    def set_script_secrets(self, secrets: tuple[str, ...]) -> None:
        """Set the secrets among the variables that the run's scripts get."""
        self._given_secrets = secrets

    @property
    def script_secrets(self) -> tuple[str, ...]:
        """All secrets that its scripts know and its pages may show."""
        return select_usable((*self._given_secrets, *self.secrets))

    def add_typed(self, process: int, text: str | None) -> None:
        """Note a text that a process typed letter by letter. None: the text is unknown."""
        self._typed = self._typed or TypedTexts()
        if text is None:
            self._typed.note_unknown()
        else:
            self._typed.note(process, text)

    def find_typed(self, secrets: Iterable[str]) -> tuple[str, ...]:
        """Find which of these secrets, or of their beginnings, were typed letter by letter."""
        return () if self._typed is None else self._typed.among(secrets)

    def record_picture(self, sha256: str, *, is_masked: bool, knew: tuple[str, ...]) -> None:
        """Note that the text on a screenshot shows none of the secrets with these digests.

        The digests are those of `secret_digest`, which depend on the screenshot.
        """
        if len(self._reviews) < _MOST_REVIEWS:
            review = ScreenshotReview.MASKED if is_masked else ScreenshotReview.NO_SECRETS
            self._reviews.setdefault(sha256, {}).update(dict.fromkeys(knew[:_MOST_NAMES], review))

    def run_file(self, artifact: Artifact) -> RunFile:
        """The path of an artifact's file, with the review of a screenshot."""
        return RunFile(self.folder / artifact.name, artifact, self._review_of(artifact.sha256))

    def _review_of(self, sha256: str) -> ScreenshotReview:
        """A review counts only if every secret of the scripts was looked for."""
        known = self._reviews.get(sha256, {})
        reviews = {
            known.get(secret_digest(secret, sha256), ScreenshotReview.UNREVIEWED)
            for secret in self.script_secrets
        }
        if not reviews or ScreenshotReview.UNREVIEWED in reviews:
            return ScreenshotReview.UNREVIEWED
        return (
            ScreenshotReview.NO_SECRETS
            if ScreenshotReview.NO_SECRETS in reviews
            else ScreenshotReview.MASKED
        )

    @property
    def has_folder(self) -> bool:
        """Whether the folder was made."""
        return self._folder is not None

    @property
    def folder(self) -> Path:
        """The run's own folder, made on first use; scripts write only into its subfolders.

        The subfolders exist before a script starts: its user owns them, and may only pass through
        the folder itself.

        Raises:
            OSError: it cannot be made.
        """
        if self._folder is None:
            made = Path(tempfile.mkdtemp(prefix=UNLOCKED + self._prefix, dir=self._within))
            self._lock = _lock(made)
            self._folder = made.rename(made.with_name(made.name.removeprefix(UNLOCKED)))
        return self._folder

    def artifact(self, name: str, kind: ArtifactKind) -> Artifact:
        """Describe a file of the folder as an artifact; it blocks while it reads the file.

        Raises:
            OSError: it is not there, or is no plain file.
        """
        with open_regular_file(self.folder / name) as file:
            digest = hashlib.file_digest(file, hashlib.sha256)
            return Artifact(
                name=name,
                kind=kind,
                size_bytes=file.tell(),
                sha256=digest.hexdigest(),
                content_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
            )

    def contains(self, path: Path) -> bool:
        """Whether a path leads to the run's own folder, as its script may have put links on it.

        Nothing of the run may be running any more.
        """
        folder = self.folder.resolve()
        return path.resolve() == folder / path.relative_to(self.folder)

    def remove(self) -> None:
        """Delete the folder with all that is in it."""
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def secret_digest(secret: str, sha256: str) -> str:
    """Compute the name of a secret in the review of the screenshot with this SHA-256."""
    named = (sha256 + secret).encode("utf-8", "replace")
    return hashlib.sha256(named).hexdigest()[:_NAME_CHARS]


@contextlib.contextmanager
def temporary_folder(within: Path | None = None, *, prefix: str = PREFIX) -> Iterator[Path]:
    """Make a folder that is deleted after the block, whatever was put into it; it blocks.

    If the agent is killed within the block, the next agent's sweep deletes the folder.

    Raises:
        OSError: the folder cannot be made.
    """
    place = Workspace(within, prefix=prefix)
    try:
        yield place.folder
    finally:
        place.remove()


def open_regular_file(path: Path) -> BufferedReader:
    """Open a file of a run for reading; a link that the run's code left is refused.

    Raises:
        OSError: it is not there, or is no plain file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def is_abandoned(folder: Path) -> bool:
    """Whether the agent of a run's folder is dead; never true where locks do not work."""
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
    """Delete a folder with all that is in it, as far as the system permits; it blocks."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        if os.path.lexists(folder):
            _remove_with_tools(folder)


def remove_path(path: Path) -> None:
    """Delete whatever is at a path, a link itself instead of its target; it blocks.

    Raises:
        OSError: a file or link cannot be deleted.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    elif path.exists():
        remove_folder(path)


def _remove_with_tools(folder: Path) -> None:
    # Python recurses once per level and opens no unreadable folder; these tools do neither.
    for uid in _other_owners(folder):
        # Only its owner, or CAP_FOWNER, which the agent lacks, may empty a sticky folder. Files of
        # other users keep their owner: one may be a second link to a file outside.
        _run("chown", "-R", "-h", f"--from={uid}", str(os.geteuid()), "--", str(folder))
    _run("chmod", "-R", "u+rwX", "--", str(folder))
    _run("rm", "-rf", "--one-file-system", "--", str(folder))


def _other_owners(folder: Path) -> list[int]:
    """List the other owners of folders below this one, where root may change the owner."""
    if os.geteuid() != _ROOT:
        return []
    not_ours = ("!", "-uid", str(os.geteuid()), "-printf", r"%U\n")
    found = _run("find", str(folder), "-xdev", "-type", "d", *not_ours)
    return sorted({int(uid) for uid in found.split()})


def _run(tool: str, *arguments: str) -> bytes:
    """Run one of the system's tools, and return its output."""
    done = subprocess.run(  # noqa: S603 -- the system's own
        [shutil.which(tool) or tool, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return done.stdout
