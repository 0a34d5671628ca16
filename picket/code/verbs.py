"""The verbs for checks as code, and their options.

Each verb imports its part when it runs, as those of `picket.cli` do.
"""
# ruff: noqa: PLC0415 - the reason stands above

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from picket.extras import require_extras

PATHS: Final = click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="DIR|FILE...",
    type=click.Path(path_type=Path),
)
DATA_DIR: Final = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".picket"),
    show_default=True,
    help="Data folder of the `picket up` to use, if SERVICE_URL is not set.",
)
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@click.command("apply", short_help="Deploy checks and what stands beside them from files.")
@PATHS
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option(
    "--exit-code", is_flag=True, help="With --dry-run: exit with 4 if something would change."
)
@click.option("--prune", is_flag=True, help="Delete what the project has and the files do not.")
@click.option("--watch", is_flag=True, help="Apply again whenever a file changes.")
@click.option(
    "--keep-secrets",
    is_flag=True,
    help="Keep what the service has for each ${NAME} that is not set.",
)
@DATA_DIR
@require_extras("agent")
def apply(paths: tuple[Path, ...], *, data_dir: Path, **flags: bool) -> int:
    """Deploy the documents of a folder, or of files, as one unit: all of them or none.

    Documents are checks as `picket run` takes them, and groups, alert channels, status pages,
    maintenance windows and private locations (docs/checks-as-code.md). The service is that at
    SERVICE_URL with API_KEY or API_KEY_FILE (a key that begins with cu_), or the running
    `picket up`. What is not in the files is kept, unless --prune is set.
    Exit codes: 0 done, 1 the service refused, 2 wrong files or settings, 3 refused key, 4 with
    --exit-code, 70 no service.
    """
    from picket.code.applying.apply_command import ApplyOptions, apply_files
    from picket.terminal import Terminal

    options = ApplyOptions(paths=paths, data_dir=data_dir, environ=os.environ, **flags)
    return apply_files(options, Terminal())


@click.command("test", short_help="Run all checks of a folder once, here or at a location.")
@PATHS
@click.option(
    "--location", metavar="SLUG", help="Run on the agents of this location of the service."
)
@click.option("--here", is_flag=True, help="Run on this machine, even if SERVICE_URL is set.")
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="KEY=VALUE",
    help="A variable that wins over those of the files; it is no secret. May be repeated.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the results as JUnit XML.",
)
@click.option(
    "--patience",
    "patience_s",
    type=click.FloatRange(min=1),
    default=1800,
    show_default=True,
    metavar="SECONDS",
    help="At a location: what has not ended by then is an error.",
)
@DATA_DIR
@require_extras("agent")
def test(paths: tuple[Path, ...], **options: Any) -> int:
    """Run all checks of a folder, or of files, once; nothing is stored, and nobody is alerted.

    They run on this machine, or, if SERVICE_URL or --location is set, on the agents of a location
    of the service (with API_KEY or API_KEY_FILE, or at the running `picket up`).
    Exit codes: 0 all passed or are degraded, 1 one did not, 2 wrong files or settings, 3 refused
    key, 70 no service.
    """
    from picket.code.trying.try_command import TryOptions, try_files
    from picket.terminal import Terminal

    return try_files(TryOptions(paths=paths, environ=os.environ, **options), Terminal())


@click.command("export", short_help="Write what a service has as files for `picket apply`.")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@DATA_DIR
@require_extras("agent")
def export(folder: Path, *, data_dir: Path) -> int:
    """Write checks, groups, channels, windows, status pages and locations as files.

    Scripts become files of their own. Secrets become references such as ${SHOP_PASSWORD}, which
    `picket apply` reads from the environment; no value of one is written.
    DIR must be empty or new.
    Exit codes: 0 written, 2 wrong folder or settings, 3 refused key, 70 no service.
    """
    from picket.code.exporting.export_command import ExportOptions, export_files
    from picket.terminal import Terminal

    options = ExportOptions(folder=folder, data_dir=data_dir, environ=os.environ)
    return export_files(options, Terminal())


@click.command("schema", short_help="Print a JSON Schema of check files, for editors.")
@require_extras("service")
def schema() -> int:
    """Print a JSON Schema of the documents that `picket run`, `test` and `apply` take.

    In VS Code with the YAML extension: write it to a file and name that in `yaml.schemas`.
    """
    import json

    from picket.code.editor_schema import editor_schema

    click.echo(json.dumps(editor_schema(), indent=2, ensure_ascii=False))
    return 0


VERBS: Final = (apply, test, export, schema)
"""The commands."""
