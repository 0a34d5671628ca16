"""What the browser benchmark looks at: a small page with its style, script, picture, and JSON."""

import json
import sys
from typing import Final

import uvloop
from aiohttp import web

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tea</title>
<link rel="stylesheet" href="/tea.css"><script src="/tea.js" defer></script></head>
<body><h1>Teas of the day</h1><img src="/tea.svg" alt="A cup" width="120" height="90">
<ul id="teas"></ul></body></html>
"""
_STYLE: Final = "body { font-family: sans-serif; margin: 2em } li { padding: .2em; color: #364 }\n"
_SCRIPT: Final = """
const fill = (teas) => {
  const list = document.getElementById('teas');
  for (const { name, price } of teas) {
    list.append(Object.assign(document.createElement('li'), { textContent: `${name} ${price}` }));
  }
};
fetch('/teas').then((answer) => answer.json()).then(fill);
"""
_PICTURE: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 30">
<path d="M4 6h24v12a8 8 0 0 1-8 8h-8a8 8 0 0 1-8-8z" fill="#364"/>
<path d="M28 9h4a4 4 0 0 1 0 10h-4" fill="none" stroke="#364" stroke-width="3"/></svg>
"""
_TEAS: Final = json.dumps([{"name": f"Tea {number}", "price": number} for number in range(40)])
_FILES: Final = {
    "/": ("text/html", _PAGE),
    "/tea.css": ("text/css", _STYLE),
    "/tea.js": ("text/javascript", _SCRIPT),
    "/tea.svg": ("image/svg+xml", _PICTURE),
    "/teas": ("application/json", _TEAS),
}


async def _file(request: web.Request) -> web.Response:
    kind, text = _FILES[request.path]
    return web.Response(text=text, content_type=kind)


def serve(port: int) -> None:
    """Until the process is ended."""
    application = web.Application()
    application.add_routes([web.get(path, _file) for path in _FILES])
    web.run_app(application, host="127.0.0.1", port=port, print=None, loop=uvloop.new_event_loop())


if __name__ == "__main__":
    serve(int(sys.argv[1]))
