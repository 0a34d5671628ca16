"""URL checks: is this address up? Always GET, judged by its status."""

import msgspec

from contract.checks import UrlSpec
from contract.requests import BodyType, HttpMethod, HttpRequest
from runners.net.http.probe import probe
from runners.net.http.response import STORED_BYTES_OF_A_URL
from runners.runner import Observation, RunContext


class UrlRunner:
    """Requests URLs."""

    spec = UrlSpec

    async def observe(self, spec: UrlSpec, ctx: RunContext) -> Observation:
        """Fetch the URL once.

        Raises:
            CheckFailed: of kind PROTOCOL, when the request cannot be sent as it is written.
        """
        sources = frozenset(assertion.source for assertion in spec.assertions)
        request = _to_get(spec.request)
        return await probe(request, ctx, sources=sources, stored_bytes=STORED_BYTES_OF_A_URL)


def _to_get(request: HttpRequest) -> HttpRequest:
    """The request as a GET without a body, whatever an imported check says."""
    if request.method is HttpMethod.GET and request.body_type is BodyType.NONE:
        return request
    return msgspec.structs.replace(request, method=HttpMethod.GET, body="", body_type=BodyType.NONE)
