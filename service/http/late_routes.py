"""Operations that are built when somebody first asks for them, and not as they are declared.

FastAPI builds validators for each parameter, body and answer of a route in its declaration: of a
hundred operations that is a third of what a start computes, and most services answer few of them.
"""

import warnings
from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any, Final

from fastapi.routing import APIRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.routing import compile_path, get_name

_BUILDING: Final = RLock()
"""The document asks for all routes in a thread, while the event loop may need one of them."""


class LateRoute(APIRoute):
    """A route that knows at first only what routing needs: its path, its methods and its name."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **declared: Any) -> None:
        self._declare: Callable[[], None] = partial(super().__init__, path, endpoint, **declared)
        self.path = path
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.endpoint = endpoint
        self.name = declared.get("name") or get_name(endpoint)
        self.methods = set(declared["methods"])

    def __getattr__(self, name: str) -> Any:
        """Build the route, if it is not built yet, for what it does not know yet."""
        with _BUILDING:
            if declare := self.__dict__.pop("_declare", None):
                self._build(declare)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None

    def _build(self, declare: Callable[[], None]) -> None:
        """What fails, as for want of memory, is tried again when somebody asks the next time."""
        try:
            declare()
            self._build_body()
        except BaseException:
            self._declare = declare
            raise

    def _build_body(self) -> None:
        """Models put building off in turn; here the warning that FastAPI silences stays silent."""
        if self.body_field is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
            self.body_field.validate(None)
