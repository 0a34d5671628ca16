"""Routes that FastAPI builds at their first request instead of at the service's start.

FastAPI builds validators for each parameter, body and response when a route is declared.
It earns its place by `cpu_s` and `rss_mb` of `make bench-start`: without it a start costs 1.55
times the CPU time and 25 MB more (six alternating pairs with FastAPI 0.165).
`LazyRoute` overrides `__getattr__` of a class of FastAPI: measure and test it with each update.
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
"""Held while a route is built: a thread builds all of them for the OpenAPI document."""


class LazyRoute(APIRoute):
    """A route that has at first only what routing needs: its path, its methods and its name."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **declared: Any) -> None:
        self._declare: Callable[[], None] = partial(super().__init__, path, endpoint, **declared)
        self.path = path
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.endpoint = endpoint
        self.name = declared.get("name") or get_name(endpoint)
        self.methods = set(declared["methods"])

    def __getattr__(self, name: str) -> Any:
        """Build the route when an attribute that it does not have yet is read."""
        with _BUILDING:
            if declare := self.__dict__.pop("_declare", None):
                self._build(declare)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None

    def _build(self, declare: Callable[[], None]) -> None:
        """Build the route; if that fails, as without memory, the next request tries again."""
        try:
            declare()
            self._build_body()
        except BaseException:
            self._declare = declare
            raise

    def _build_body(self) -> None:
        """Build the body's model, which is lazy too, without the warning that FastAPI silences."""
        if self.body_field is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
            self.body_field.validate(None)
