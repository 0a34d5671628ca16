"""The verbs of the command line and their options.

Each verb imports its part when it runs: `picket run` works where the service's libraries are
missing, `picket service` where the agent's are, and `--help` answers at once.
"""
# ruff: noqa: PLC0415 - the reason stands above

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from contract.release import RELEASE
from picket.code import verbs
from picket.errors import CommandError, ExitCode
from picket.extras import check_extras, require_extras

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_PASSED_ON = {"ignore_unknown_options": True}


@click.group(context_settings=_CONTEXT)
@click.version_option(RELEASE, prog_name="picket", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show a traceback if an internal error ends a command.")
def cli(*, debug: bool) -> None:
    """Synthetic monitoring from inside private networks.

    Exit codes: 0 done, or the check passed; 1 the check failed; 2 wrong input;
    3 refused key; 70 an internal error, which says nothing about the target.
    """


class _WithTypes(click.Command):
    """A command whose help names the check types that agents run."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text; the types are loaded for it."""
        from contract.checks import AGENT_TYPES

        self.help = str(self.help).replace("TYPES", ", ".join(sorted(AGENT_TYPES)))
        super().format_help_text(ctx, formatter)


@cli.command(cls=_WithTypes, short_help="Run one check from a file, without a service.")
@click.argument("file")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the whole result as JSON instead of a report."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1, max=1800),
    metavar="SECONDS",
    help="Time limit of the run; by default 30 (uptime checks), 240 (scripts), 1800 (suites).",
)
@click.option(
    "--artifacts",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the files of the run: traces, videos, screenshots.",
)
@require_extras("agent")
def run(file: str, *, as_json: bool, timeout_s: float | None, artifacts: Path | None) -> int:
    """Run one check from a JSON or YAML FILE (- reads standard input), without a service.

    Types: TYPES. The file has a check as in docs/checks.md, or as the public API accepts it.
    Exit codes: 0 passed or degraded, 1 failed or timed out, 2 wrong file, 70 the check could not
    run.
    """
    from picket.run import RunOptions, run_file

    options = RunOptions(as_json=as_json, timeout_s=timeout_s, artifacts=artifacts)
    return run_file(file, options)


class _WithSettings(click.Command):
    """A command whose help ends with the environment variables that it reads."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table; values are never read, so no secret can be shown."""
        check_extras(str(ctx.info_name))
        from picket.settings_help import settings_rows

        with formatter.section("Environment"):
            formatter.write_dl(settings_rows(str(ctx.info_name)))


@cli.command(cls=_WithSettings)
@require_extras("agent")
def agent() -> int:
    """Run the agent in the foreground.

    Exit codes: 0 stopped, 2 wrong settings, 3 refused key.
    """
    from agent.__main__ import main

    return main()


@contextmanager
def _explain_service_errors() -> Iterator[None]:
    from service.errors import CommandError as NotDoneError

    try:
        yield
    except NotDoneError as problem:
        code = ExitCode.OWN_FAULT if problem.own_fault else ExitCode.BAD_INPUT
        raise CommandError(str(problem), code) from problem


class _Service(_WithSettings, click.Group):
    """The service with the commands that it declares, which are loaded when one is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        check_extras("service")
        from service.cli import commands

        return commands.list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of them. None: there is none of this name."""
        check_extras("service")
        from service.cli import commands

        return commands.get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> object:
        """Serve, or carry a command out; its refusal becomes a sentence of ours."""
        with _explain_service_errors():
            return super().invoke(ctx)


@cli.group(cls=_Service, invoke_without_command=True, subcommand_metavar="[COMMAND] ...")
@click.pass_context
@require_extras("service")
def service(ctx: click.Context) -> int:
    """Run the service in the foreground, or one of its commands.

    Exit codes: 0 stopped, 2 wrong settings.
    """
    if ctx.invoked_subcommand is not None:
        return ExitCode.OK
    from service.__main__ import main

    return main()


@cli.command(short_help="Start everything on loopback, with starter checks.")
@click.option(
    "--until-results",
    type=click.IntRange(min=1),
    metavar="N",
    help="End after at least N results and print a summary.",
)
@click.option(
    "--patience",
    "patience_s",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="With --until-results: give up if no result arrives for this long.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of the service; by default that of the last start, or 8080, or a free one.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".picket"),
    show_default=True,
    help="Folder for keys, data and logs, which is kept between starts.",
)
@click.option("--fresh", is_flag=True, help="Empty the data folder first.")
@require_extras("agent", "service")
def up(
    *,
    until_results: int | None,
    patience_s: float,
    port: int | None,
    data_dir: Path,
    fresh: bool,
) -> int:
    """Start service, agent and a demo target with starter checks, all on loopback.

    Shows a live table of results on a terminal, and one line per result elsewhere.

    It stops when its service or its agent stops. To see what happens when an agent is killed, start
    a second one and kill that:

    \b
      API_KEY_FILE=.picket/location-key EXTRA_CA_CERTS=.picket/demo-authority.pem \\
        SERVICE_URL=$(cat .picket/service-url) AGENT_DATA_DIR=$PWD/.picket/second \\
        AGENT_HEALTH_HOST=127.0.0.1 AGENT_HEALTH_PORT=0 HEARTBEAT_PORT=0 .venv/bin/picket agent
    """  # noqa: D301 - \b is one character, a mark for click
    from picket.terminal import Terminal
    from picket.up.command import UpOptions, run_up

    options = UpOptions(
        data_dir=data_dir,
        fresh=fresh,
        port=port,
        until_results=until_results,
        patience_s=patience_s,
    )
    return run_up(options, Terminal())


@cli.command(short_help="Open a trace in Playwright's viewer, for a browser of your choice.")
@click.argument("source", metavar="FILE|RESULT")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the viewer; a free one by default."
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".picket"),
    show_default=True,
    help="Data folder of the `picket up` that has the result, if SERVICE_URL is not set.",
)
@require_extras("agent")
def trace(source: str, *, port: int | None, data_dir: Path) -> int:
    """Serve Playwright's trace viewer on loopback and print the address to open in a browser.

    FILE is a trace, or a folder with traces. RESULT is the id of a result; its traces are
    downloaded from the service at SERVICE_URL with API_KEY or API_KEY_FILE (a key that begins with
    cu_), or from the running `picket up`. The viewer and the trace stay on this machine; nothing
    is requested from the internet.
    Exit codes: 0 stopped, 2 no such trace, 3 refused key, 70 no viewer or no service.
    """
    from picket.terminal import Terminal
    from picket.trace import TraceOptions, open_trace

    return open_trace(TraceOptions(source=source, data_dir=data_dir, port=port), Terminal())


@cli.group("status-page", short_help="Write a status page as static files.")
def status_page() -> None:
    """Commands for status pages."""


@status_page.command("export", short_help="Write a status page as static files.")
@click.argument("page", metavar="URL|NAME")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder for the files; those of an earlier export are replaced.",
)
@click.option(
    "--at",
    metavar="ADDRESS",
    help="Where the folder will be served, as in https://status.example.com, for links in feeds.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".picket"),
    show_default=True,
    help="Data folder of the `picket up` that has the page, if SERVICE_URL is not set.",
)
@require_extras("agent")
def export_status_page(page: str, *, out: Path, at: str | None, data_dir: Path) -> int:
    """Write a status page as HTML, style sheet, feeds and pictures, which any file server serves.

    URL is the address of the page or the last part of it, NAME its title. It is downloaded from
    the service at SERVICE_URL with API_KEY or API_KEY_FILE (a key that begins with cu_), or from
    the running `picket up`. Private pages are exported, too; the files have no key.
    Exit codes: 0 written, 2 no such page, 3 refused key, 70 no service.
    """
    import os

    from picket.status_page import ExportOptions, export_page
    from picket.terminal import Terminal

    options = ExportOptions(wanted=page, out=out, at=at, data_dir=data_dir, environ=os.environ)
    return export_page(options, Terminal())


@cli.command(short_help="Check everything that an agent depends on, and say how to fix problems.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@require_extras("agent")
def doctor(*, as_json: bool) -> int:
    """Check everything that an agent on this host depends on; print one line each, with the fix.

    It reads the same environment variables as the agent.
    Exit codes: 0 no failures, warnings are possible; 1 something fails; 2 a setting is wrong;
    3 the service refuses the key.
    """
    from picket.doctor.command import run_doctor

    return run_doctor(as_json=as_json)


@cli.command(short_help="Install what scripted checks run on.")
@click.option("--check", is_flag=True, help="Only list what is installed, and where.")
@click.option(
    "--packages/--no-packages",
    default=True,
    help="Also install Debian packages such as Chromium, as root or with sudo. [default: yes]",
)
@require_extras("agent", "scripts")
def setup(*, check: bool, packages: bool) -> int:
    """Install the runtimes of scripted checks (Node and its libraries), ffmpeg and Chromium.

    Existing installations are kept. Runtimes are installed inside this installation, or in
    /usr/local/lib/picket/runtimes if root installs where other users cannot enter;
    PICKET_RUNTIMES names another folder.
    Exit codes: 0 everything is installed, 1 something is missing.
    """
    from picket.setup import SetupOptions, run_setup

    return run_setup(SetupOptions(check=check, packages=packages))


@cli.command(short_help="Redact secrets in a file as the agent does, or search for them.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--secret-file",
    "secret_files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="Text file with one secret per line, or with a private key. May be given several times.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the redacted file; FILE itself is not changed.",
)
@click.option("--check", is_flag=True, help="Only search, and report where secrets are.")
@click.option(
    "--typed",
    is_flag=True,
    help="The secrets were typed letter by letter, so their beginnings are searched for too.",
)
@require_extras("agent")
def scrub(
    file: Path, *, secret_files: tuple[Path, ...], out: Path | None, check: bool, typed: bool
) -> int:
    """Redact secrets in FILE with the agent's own code, or search it with the agent's scanner.

    Traces, other archives, reports and logs are unpacked as in the agent.
    Exit codes: 0 clean, 1 it contains a secret, 2 wrong input, 70 an internal error.
    """
    from picket.scrub import ScrubOptions, scrub_file

    options = ScrubOptions(secret_files=secret_files, out=out, check=check, typed=typed)
    return scrub_file(file, options)


for _verb in verbs.VERBS:
    cli.add_command(_verb)


def _add_service_command(name: str, summary: str) -> None:
    """Add a command of the service, which parses its own options and prints its own help."""

    @cli.command(name, short_help=summary, add_help_option=False, context_settings=_PASSED_ON)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @require_extras("service")
    def command(arguments: tuple[str, ...]) -> int:
        from picket.service_access import tell_port
        from service.cli import commands

        tell_port(os.environ, Path(".picket"))
        with _explain_service_errors():
            ended = commands.main([name, *arguments], prog_name="picket", standalone_mode=False)
        return int(ended or ExitCode.OK)


_add_service_command("keys", "Create, list and revoke API keys of the service on this machine.")
_add_service_command("accounts", "Create and list accounts of the service on this machine.")
_add_service_command("audit", "Print who changed what in the service on this machine.")
_add_service_command("users", "Create, list and disable users of the pages on this machine.")
_add_service_command("sign-in", "Print a link that signs one browser in, once.")
_add_service_command("backup", "Write the service's whole installation to one file.")
_add_service_command("restore", "Restore a backup into an empty data folder of the service.")
_add_service_command("migrate-store", "Move the service's database to PostgreSQL, or back.")
_add_service_command("openapi", "Print the OpenAPI document of the public API.")
