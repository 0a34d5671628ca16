"""Where `picket` starts: runs a command and turns whatever ends it into a sentence and a code."""

import io
import os
import sys
import traceback
from collections.abc import Sequence

import click

from picket.cli import cli
from picket.errors import CommandError, ExitCode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code. No arguments: those of the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without UTF-8 shows a question mark where it cannot show a bar.
            stream.reconfigure(errors="replace")
    try:
        ended = cli.main(args=given, prog_name="picket", standalone_mode=False)
        return int(ended or ExitCode.OK)
    except (KeyboardInterrupt, click.Abort):
        print("picket: stopped", file=sys.stderr)  # noqa: T201 - the command line prints
        return ExitCode.INTERRUPTED
    except Exception as problem:  # noqa: BLE001 - the last resort: nobody reads a traceback
        return _end(problem, debug="--debug" in given)


def _end(problem: Exception, *, debug: bool) -> int:
    while isinstance(problem, ExceptionGroup):
        # Tasks fail in groups; the first one is what the others followed.
        problem = problem.exceptions[0]
    if isinstance(problem, BrokenPipeError):
        # Whoever read our output has enough; the interpreter must not try to flush the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OWN_FAULT
    wrong_input = isinstance(problem, CommandError) and problem.code is ExitCode.BAD_INPUT
    if debug and not wrong_input:
        sys.stderr.write(_without_secrets("".join(traceback.format_exception(problem))))
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        print(problem.format_message(), file=sys.stderr)  # noqa: T201 - the command line prints
        return ExitCode.BAD_INPUT
    sentence, code = _explain(problem)
    print(f"picket: {sentence}", file=sys.stderr)  # noqa: T201 - the command line prints
    return code


def _without_secrets(text: str) -> str:
    # Only now: no other command needs what the agent is made of to print one line.
    from agent.crash_hooks import likely_secrets  # noqa: PLC0415
    from agent.telemetry.logs import Redactor  # noqa: PLC0415

    return Redactor(likely_secrets(os.environ)).text(text)


def _explain(problem: Exception) -> tuple[str, ExitCode]:
    if isinstance(problem, CommandError):
        return problem.message, problem.code
    if isinstance(problem, click.ClickException):
        command = (
            problem.ctx.command_path
            if isinstance(problem, click.UsageError) and problem.ctx
            else "picket"
        )
        return f"{problem.format_message().rstrip('.')}; see {command} --help", ExitCode.BAD_INPUT
    # The text of a strange error may hold a secret; its type does not.
    kind = type(problem).__name__
    return (
        f"an internal error ended the command ({kind}); use --debug for a traceback",
        ExitCode.OWN_FAULT,
    )


if __name__ == "__main__":
    sys.exit(main())
