"""Which service a command talks to, and with which key."""

from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from picket.api_client import ApiRefusedError, ApiUnreachableError, PublicApi
from picket.errors import CommandError, ExitCode
from picket.up.data_dir import DataDir

_AGENTS_KEY: Final = "pl_"
_ADDRESSING: Final = ("DATABASE_URL", "SERVICE_DATA_DIR", "SERVICE_PORT", "SERVICE_PUBLIC_URL")


def open_api(environ: Mapping[str, str], data_dir: Path) -> PublicApi:
    """The service of the environment, or the one that `picket up` runs with this data folder.

    Raises:
        CommandError: neither is known, or the key is of another kind.
    """
    if url := environ.get("SERVICE_URL"):
        return PublicApi(url.rstrip("/"), _read_key(environ))
    folder = DataDir(data_dir)
    url = folder.service_url()
    # Another program may listen there by now; it would get the key.
    if url is None or not folder.is_in_use():
        raise CommandError(
            f"no `picket up` is running in {data_dir}; start it, name its folder with "
            "--data-dir, or set SERVICE_URL and API_KEY"
        )
    return PublicApi(url, folder.api_key())


@asynccontextmanager
async def use_api(environ: Mapping[str, str], data_dir: Path) -> AsyncIterator[PublicApi]:
    """Open that service for a block; what goes wrong becomes a sentence to act on.

    Raises:
        CommandError: there is no such service, it refuses the key, or does not answer.
    """
    async with open_api(environ, data_dir) as api:
        try:
            yield api
        except ApiUnreachableError as problem:
            remedy = suggest_remedy(environ)
            raise CommandError(f"{problem.message}; {remedy}", problem.code) from problem
        except ApiRefusedError as refused:
            if refused.status != HTTPStatus.UNAUTHORIZED:
                raise
            raise CommandError(
                f"the service at {api.url} refuses the key", ExitCode.KEY_REFUSED
            ) from refused


def suggest_remedy(environ: Mapping[str, str]) -> str:
    """What to do when that service does not answer."""
    if "SERVICE_URL" in environ:
        return "check SERVICE_URL"
    return "start `picket up`, or set SERVICE_URL and API_KEY"


def tell_port(environ: MutableMapping[str, str], data_dir: Path) -> None:
    """Have links of the service lead to the port that `picket up` has found free for it.

    Settings that say which service is meant, or where it is reached, come first.
    """
    if any(name in environ for name in _ADDRESSING):
        return
    folder = DataDir(data_dir)
    url = folder.service_url() if folder.is_in_use() else None
    if url and (port := urlsplit(url).port):
        environ["SERVICE_PORT"] = str(port)


def _read_key(environ: Mapping[str, str]) -> str:
    key, file = environ.get("API_KEY", ""), environ.get("API_KEY_FILE")
    try:
        key = key or (Path(file).read_text().strip() if file else "")
    except OSError as problem:
        raise CommandError(f"API_KEY_FILE is {file}: {problem.strerror}") from problem
    if not key:
        raise CommandError("set API_KEY, or API_KEY_FILE, to an API key of the service (cu_…)")
    if key.startswith(_AGENTS_KEY):
        raise CommandError(
            "API_KEY is an agent's key (pl_…), which cannot read results; set an API "
            "key (cu_…); `picket keys create --role READ_ONLY` creates one"
        )
    return key
