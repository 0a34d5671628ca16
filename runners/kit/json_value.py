"""What a JSON document may be made of."""

from typing import Any

Json = dict[str, Any] | list[Any] | str | int | float | bool | None
