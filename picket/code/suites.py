"""Packs the folders of Playwright suites, and sends them to a service."""

from http import HTTPStatus

from picket.api_client import ApiRefusedError, PublicApi
from picket.code.reading.linking import Linked
from picket.run import pack_or_explain
from sandbox.workspace import temporary_folder


async def send_suites(api: PublicApi, linked: Linked) -> None:
    """Upload the bundles that the service does not have, and name them in the checks.

    Raises:
        CommandError: a folder cannot be packed.
    """
    for resource in linked.resources:
        body = linked.checks.get(resource.logical_id) if resource.type == "check" else None
        if body is None or body.suite is None or resource.payload is None:
            continue
        with temporary_folder() as place:
            suite = pack_or_explain(body.suite, place / "suite.tar.gz")
            path = f"/v1/code-bundles/{suite.sha256}"
            if not await _has(api, path):
                await api.send_file(path, suite.path)
        resource.payload["codeBundlePath"] = suite.sha256


async def _has(api: PublicApi, path: str) -> bool:
    try:
        await api.ask("GET", path)
    except ApiRefusedError as refused:
        if refused.status == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True
