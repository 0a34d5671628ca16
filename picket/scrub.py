"""`picket scrub`: hides secrets in a file as the agent would, or says where they are left."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from contract.result import ArtifactKind
from picket.errors import CommandError, ExitCode
from redaction.clean import CleanFile, UnscannableError, Withheld, pass_file
from redaction.files import clean_in_child
from redaction.policy import select_usable, why_unhidden, with_certain_prefixes
from redaction.scanner.scan import scan_file
from sandbox.workspace import RunFile, Workspace

_KINDS: Final[dict[str, ArtifactKind]] = {
    ".zip": "trace", ".png": "screenshot", ".jpg": "screenshot", ".jpeg": "screenshot",
    ".webm": "video",
}  # fmt: skip
_KEY_BEGINS: Final = "-----BEGIN"
_LIMIT_S: Final = 1800.0


class ScrubOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    secret_files: tuple[Path, ...]
    out: Path | None
    """Where the scrubbed file goes. None: nowhere, it is only looked at."""
    check: bool
    typed: bool
    """Whether the secrets were typed letter by letter."""


def scrub_file(file: Path, options: ScrubOptions) -> int:
    """Scrub or check a file; gives the exit code.

    Raises:
        CommandError: the options, the file or the secrets cannot be used.
    """
    if options.check == (options.out is not None):
        raise CommandError("use either --check, or --out with the path of the redacted file")
    if not file.is_file():
        raise CommandError(f"FILE is {file}; use a readable file")
    if options.out is not None and options.out.exists() and options.out.samefile(file):
        raise CommandError(f"--out is {options.out}, which is FILE itself; use another file")
    secrets = _secrets_in(options.secret_files)
    if options.out is None:
        return _check(file, secrets, typed=secrets if options.typed else ())
    return _scrub(file, secrets, options.out, typed=secrets if options.typed else ())


def _check(file: Path, secrets: tuple[str, ...], *, typed: tuple[str, ...]) -> int:
    try:
        leaks = scan_file(file.resolve(), with_certain_prefixes(secrets, typed))
    except UnscannableError as problem:
        raise CommandError(f"{file} cannot be searched: {problem}") from problem
    except OSError as problem:
        raise CommandError(f"FILE is {file}; {problem.strerror or problem}") from problem
    for leak in leaks:
        click.echo(f"secret found in {leak.kind}: {leak.place}")
    if leaks:
        return ExitCode.FAILED
    click.echo(f"no secret found in {file.stat().st_size} bytes")
    return ExitCode.OK


def _scrub(file: Path, secrets: tuple[str, ...], out: Path, *, typed: tuple[str, ...]) -> int:
    workspace = Workspace()
    try:
        copied = _copy(file, workspace)
        cleaning = clean_in_child([copied], secrets, typed=typed, limit_s=_LIMIT_S)
        (verdict,) = asyncio.run(cleaning)
        if not isinstance(verdict, Withheld):
            _put(pass_file(copied, verdict), out)
    except OSError as problem:
        raise CommandError(f"{file} cannot be copied: {problem.strerror}") from problem
    finally:
        workspace.remove()
    if isinstance(verdict, Withheld):
        return _withheld(file, verdict)
    places = "1 place" if verdict.replacements == 1 else f"{verdict.replacements} places"
    click.echo(f"{places} redacted; the scanner found no secret in {out}")
    return ExitCode.OK


def _withheld(file: Path, withheld: Withheld) -> int:
    if withheld.is_our_fault:
        raise CommandError(withheld.because, ExitCode.OWN_FAULT)
    if withheld.leak is None:
        raise CommandError(f"{file} cannot be searched: {withheld.because}")
    click.echo(f"not written: {withheld.because}")
    return ExitCode.FAILED


def _copy(file: Path, workspace: Workspace) -> RunFile:
    """The agent's own way is to work on a copy that nobody else has."""
    name = f"file{file.suffix}"
    shutil.copyfile(file, workspace.folder / name)
    kind = _KINDS.get(file.suffix.lower(), "log")
    return RunFile(workspace.folder / name, workspace.artifact(name, kind))


def _put(file: CleanFile, out: Path) -> None:
    try:
        shutil.copyfile(file.path, out)
    except OSError as problem:
        raise CommandError(f"--out is {out}; {problem.strerror}") from problem


def _secrets_in(files: Sequence[Path]) -> tuple[str, ...]:
    """What to look for; each line is one, and so is a key with its lines.

    Raises:
        CommandError: there is none that can be looked for.
    """
    given = [secret for file in files for secret in _lines_of(file)]
    for number, secret in enumerate(given, start=1):
        because = why_unhidden(secret)
        if because is not None:
            click.echo(f"secret {number} is not searched for: {because}", err=True)
    secrets = select_usable(given)
    if not secrets:
        raise CommandError("--secret-file has no usable secret; put one on each line")
    return secrets


def _lines_of(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandError(f"--secret-file is {file}; use a readable text file") from problem
    if text.startswith(_KEY_BEGINS):
        return [text]
    return [line for line in text.splitlines() if line.strip()]
