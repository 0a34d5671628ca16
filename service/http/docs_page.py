"""The OpenAPI document as one page of HTML: no script, nothing loaded from anywhere."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

PAGE_PATH: Final = "/docs"
_STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
details { border: 1px solid #8886; border-radius: .4rem; margin: .4rem 0; padding: .3rem .7rem }
summary { cursor: pointer } summary code { font-weight: 600 }
pre { overflow-x: auto; background: #8881; padding: .6rem; border-radius: .3rem; font-size: 13px }
table { border-collapse: collapse } td, th { text-align: left; padding: .15rem .8rem .15rem 0 }
.verb { display: inline-block; min-width: 4.2rem; font-weight: 700 }
"""
_MOST_DEPTH: Final = 6


def docs_page(document: Mapping[str, Any]) -> str:
    """The whole page."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(document['info'].get('description', ''))}</p>"
        '<p>The document for programs: <a href="openapi.json">openapi.json</a></p>'
        f"{''.join(_sections(document))}</html>"
    )


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            tag = operation.get("tags", ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(document, path, verb, operation))
    for tag, blocks in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(blocks)}"


def _operation(
    document: Mapping[str, Any], path: str, verb: str, operation: Mapping[str, Any]
) -> str:
    said = escape(operation.get("description") or operation.get("summary", ""))
    return (
        f'<details><summary><span class="verb">{verb.upper()}</span><code>{escape(path)}</code>'
        f" {said}</summary>{_parameters(operation)}"
        f"{''.join(_bodies(document, operation))}</details>"
    )


def _parameters(operation: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{escape(parameter['in'])}"
        f"<td><code>{escape(json.dumps(_type(parameter.get('schema', {}))))}</code>"
        f"<td>{escape(parameter.get('description', ''))}"
        for parameter in operation.get("parameters", [])
    )
    return f"<table><tr><th>parameter<th>in<th>type<th>{rows}</table>" if rows else ""


def _bodies(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    if body := operation.get("requestBody"):
        yield f"<h4>body</h4>{_content(document, body)}"
    for status, response in operation["responses"].items():
        said = escape(f"{status} {response.get('description', '')}")
        shown = _content(document, response) if status.startswith("2") else ""
        yield f"<p><b>{said}</b></p>{shown}"


def _content(document: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    schema = part.get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        return ""
    shape = json.dumps(_shape(document, schema, depth=0), indent=2, ensure_ascii=False)
    return f"<pre>{escape(shape)}</pre>"


def _shape(document: Mapping[str, Any], schema: Mapping[str, Any], *, depth: int) -> Any:
    """A schema as an example-like outline: names, types, limits, defaults."""
    if depth > _MOST_DEPTH:
        return "…"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return _shape(document, document["components"]["schemas"][name], depth=depth + 1)
    if "properties" in schema:
        needed = schema.get("required", [])
        return {
            name + ("*" if name in needed else ""): _shape(document, inner, depth=depth + 1)
            for name, inner in schema["properties"].items()
        }
    if schema.get("type") == "array":
        return [_shape(document, schema.get("items", {}), depth=depth + 1)]
    return _choice(document, schema, depth=depth)


def _choice(document: Mapping[str, Any], schema: Mapping[str, Any], *, depth: int) -> Any:
    """One of several schemas; null beside one other is not worth a word."""
    options = [inner for inner in schema.get("anyOf", ()) if inner.get("type") != "null"]
    if len(options) == 1:
        return _shape(document, {**options[0], **_own(schema)}, depth=depth)
    if options:
        return {"any of": [_shape(document, inner, depth=depth + 1) for inner in options]}
    return _type(schema)


def _own(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in ("default", "description") if key in schema}


def _type(schema: Mapping[str, Any]) -> str:
    """One line on a plain value."""
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    words = [
        " | ".join(map(str, choices)) if choices else str(schema.get("type", "any")),
        f"≥ {schema['minimum']}" if "minimum" in schema else "",
        f"≤ {schema['maximum']}" if "maximum" in schema else "",
        f"at most {schema['maxLength']} characters" if "maxLength" in schema else "",
        f"= {json.dumps(schema['default'])}" if "default" in schema else "",
        f"— {schema['description']}" if "description" in schema else "",
    ]
    return " ".join(word for word in words if word).replace("\n", " ")
