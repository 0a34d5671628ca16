"""Groups as a person sends them, and as they are stored."""

from typing import Any, Final

from service.checks.resolve import build_doc
from service.groups.model import Form, GroupRow
from service.groups.schemas import AnyGroupWrite, GroupV2Write, GroupWrite

_MODELS: Final[dict[Form, type[AnyGroupWrite]]] = {Form.V1: GroupWrite, Form.V2: GroupV2Write}


def group_body(**fields: Any) -> dict[str, Any]:
    """A group without any setting, unless it is given one."""
    return {"name": "Shop", **fields}


def a_group(form: Form = Form.V1, **fields: Any) -> GroupRow:
    """The same as it is stored."""
    doc = build_doc(_MODELS[form].model_validate(group_body(**fields)))
    return GroupRow(
        id=1, account_id="a-1", name="Shop", form=form, doc=doc, created_ms=0, updated_ms=None
    )
