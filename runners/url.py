"""URL checks: is this address up? Always GET, judged by its status."""

import msgspec

from contract.checks import UrlSpec
from contract.requests import BodyType, HttpMethod, HttpRequest
from runners.kit.http.body import STORED_BYTES_OF_A_URL
from runners.kit.http_look import look
from runners.kit.observation import Observation
from runners.kit.runner import RunContext


class UrlRunner:
    """Looks at URLs."""

    spec = UrlSpec

    async def observe(self, spec: UrlSpec, ctx: RunContext) -> Observation:
        """Fetch the URL once.

        Raises:
            CheckFailed: of kind PROTOCOL, when the request cannot be sent as it is written.
        """
        return await look(_as_get(spec.request), ctx, stored_bytes=STORED_BYTES_OF_A_URL)


def _as_get(request: HttpRequest) -> HttpRequest:
    if request.method is HttpMethod.GET and request.body_type is BodyType.NONE:
        return request
    return msgspec.structs.replace(request, method=HttpMethod.GET, body="", body_type=BodyType.NONE)
