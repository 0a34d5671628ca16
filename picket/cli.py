"""The verbs of the command line and their options.

Each verb imports its part when it runs: `picket run` works where the service's libraries are
missing, `picket service` where the agent's are, and `--help` answers at once.
"""
# ruff: noqa: PLC0415 - the reason stands above

from pathlib import Path

import click

from contract.release import RELEASE
from picket.extras import needs, require

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_PASSED_ON = {"ignore_unknown_options": True}


@click.group(context_settings=_CONTEXT)
@click.version_option(RELEASE, prog_name="picket", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show a traceback when a fault of ours ends a command.")
def cli(*, debug: bool) -> None:
    """Synthetic monitoring from inside private networks.

    Exit codes: 0 done, or the check passed; 1 the check failed; 2 wrong input;
    3 refused key; 70 a fault of ours, which says nothing about the target.
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
    help="The longest that the run may take (30 for uptime checks, 240 for scripts).",
)
@click.option(
    "--artifacts",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Put the files that the run leaves into this folder: traces, videos, screenshots.",
)
@needs("agent")
def run(file: str, *, as_json: bool, timeout_s: float | None, artifacts: Path | None) -> int:
    """Run one check from a JSON or YAML FILE (- reads standard input), without a service.

    Types: TYPES. The file holds a check as docs/checks.md shows it, or as the public API takes
    it.
    Exit codes: 0 passed or degraded, 1 failed or timed out, 2 wrong file, 70 we could not look.
    """
    from picket.run import RunOptions, run_file

    options = RunOptions(as_json=as_json, timeout_s=timeout_s, artifacts=artifacts)
    return run_file(file, options)


class _WithSettings(click.Command):
    """A command whose help ends with the environment variables that it reads."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table; values are never read, so no secret can be shown."""
        require(str(ctx.info_name))
        from picket.settings_help import settings_rows

        with formatter.section("Environment"):
            formatter.write_dl(settings_rows(str(ctx.info_name)))


@cli.command(cls=_WithSettings)
@needs("agent")
def agent() -> int:
    """Run the agent in the foreground.

    Exit codes: 0 stopped, 2 wrong settings, 3 refused key.
    """
    from picket.agent import run_agent

    return run_agent()


@cli.command(cls=_WithSettings)
@needs("service")
def service() -> int:
    """Run the service in the foreground.

    Exit codes: 0 stopped, 2 wrong settings.
    """
    from picket.service import run_service

    return run_service()


@cli.command(short_help="Start everything on loopback, with starter checks.")
@click.option(
    "--until-results",
    type=click.IntRange(min=1),
    metavar="N",
    help="End after N results and print a summary.",
)
@click.option(
    "--patience",
    "patience_s",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="With --until-results: give up when nothing new came for so long.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of the service; by default that of the last start, at first 8080 if it is free.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".picket"),
    show_default=True,
    help="Where keys, data and logs are kept between starts.",
)
@click.option("--fresh", is_flag=True, help="Empty the data folder first.")
@needs("agent", "service")
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

    All of it ends when its service or its agent ends. To see what a killed agent does, kill a
    second one:

    \b
      API_KEY_FILE=.picket/location-key EXTRA_CA_CERTS=.picket/demo-authority.pem \\
        SERVICE_URL=$(cat .picket/service-url) AGENT_DATA_DIR=$PWD/.picket/second \\
        AGENT_HEALTH_PORT=0 HEARTBEAT_PORT=0 .venv/bin/picket agent
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
    help="Folder of the `picket up` whose results are meant, where SERVICE_URL is not set.",
)
@needs("agent")
def trace(source: str, *, port: int | None, data_dir: Path) -> int:
    """Serve Playwright's trace viewer on loopback and print the address to open in a browser.

    FILE is a trace, or a folder with traces; RESULT is the id of a result. Its traces come from
    the service at SERVICE_URL, by API_KEY or API_KEY_FILE (a key that begins with cu_), or from
    the running `picket up`. The viewer and the trace stay on this machine; nothing is asked of
    the internet.
    Exit codes: 0 stopped, 2 no such trace, 3 refused key, 70 no viewer here, or no service.
    """
    from picket.terminal import Terminal
    from picket.trace import TraceOptions, open_trace

    return open_trace(TraceOptions(source=source, data_dir=data_dir, port=port), Terminal())


@cli.command(short_help="Look at what an agent depends on.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@needs("agent")
def doctor(*, as_json: bool) -> int:
    """Look at what an agent on this host depends on: one line each, with the fix.

    It reads the same environment variables as the agent.
    Exit codes: 0 fine, warnings included; 1 something fails; 2 a setting is wrong; 3 the service
    refuses the key.
    """
    from picket.doctor.command import run_doctor

    return run_doctor(as_json=as_json)


@cli.command(short_help="Install what scripted checks run on.")
@click.option("--check", is_flag=True, help="Only say what is installed, and where.")
@click.option(
    "--packages/--no-packages",
    default=True,
    help="Install Debian's packages too, Chromium above all, as root or with sudo. [default: yes]",
)
@needs("agent", "scripts")
def setup(*, check: bool, packages: bool) -> int:
    """Install the runtimes of scripted checks (Node and its libraries), ffmpeg and Chromium.

    Whatever is there already stays as it is. As root, where other users cannot enter the folder
    of this installation, the runtimes go to /usr/local/lib/picket/runtimes, and else below this
    installation; PICKET_RUNTIMES names another folder.
    Exit codes: 0 all of it is installed, 1 something is missing.
    """
    from picket.setup import SetupOptions, run_setup

    return run_setup(SetupOptions(check=check, packages=packages))


@cli.command(short_help="Hide secrets in a file as the agent would, or look for them.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--secret-file",
    "secret_files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="Text file with one secret a line, or with a key. May be given several times.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the scrubbed file goes; FILE itself stays as it is.",
)
@click.option("--check", is_flag=True, help="Only look, and say where secrets are.")
@click.option(
    "--typed",
    is_flag=True,
    help="They were typed letter by letter: their beginnings are secret too, and are looked for "
    "with this option only.",
)
@needs("agent")
def scrub(
    file: Path, *, secret_files: tuple[Path, ...], out: Path | None, check: bool, typed: bool
) -> int:
    """Hide secrets in FILE with the agent's own code, or look for them with its scanner.

    Traces, other archives, reports and logs are opened as the agent opens them.
    Exit codes: 0 clean, 1 a secret is in it, 2 wrong input, 70 a fault of ours.
    """
    from picket.scrub import ScrubOptions, scrub_file

    options = ScrubOptions(secret_files=secret_files, out=out, check=check, typed=typed)
    return scrub_file(file, options)


def _at_service(name: str, told: str) -> None:
    """A command of the service, which reads its own options and tells its own help."""

    @cli.command(name, short_help=told, add_help_option=False, context_settings=_PASSED_ON)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @needs("service")
    def command(arguments: tuple[str, ...]) -> int:
        from picket.service_commands import at_service

        return at_service((name, *arguments))


_at_service("keys", "Make, list and revoke API keys of the service on this machine.")
_at_service("accounts", "Make and list accounts of the service on this machine.")
_at_service("audit", "Print who changed what in the service on this machine.")
_at_service("openapi", "Print the OpenAPI document of the public API.")
