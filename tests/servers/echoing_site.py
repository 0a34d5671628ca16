"""A web site on loopback that gives back whatever it is told, wherever a site can."""

import contextlib
import html
import json
from collections.abc import AsyncIterator
from urllib.parse import quote

from aiohttp import WSMsgType, web

PAGE = """<!doctype html><title>@TITLE@</title>
<meta name="token" content="@HTML@"><p id="text">@HTML@</p><div id="shadow"></div>
<p><b>@START@</b><i>@REST@</i></p><p id="letters-of">@LETTERS@</p>
<input id="field"><input id="password" type="password"><textarea id="letters"></textarea>
<a id="download" href="/download?q=@QUOTED@" download="file-@QUOTED@.txt">download</a>
<p id="ready"></p>
<script>
  const secret = @JSON_TEXT@;
  localStorage.setItem('secret', secret);
  sessionStorage.setItem('secret', JSON.stringify({ secret }));
  document.cookie = 'own=' + encodeURIComponent(secret);
  console.log('said', secret, { secret }); console.error(new Error(secret));
  shadow.attachShadow({ mode: 'open' }).innerHTML = '<p>' + encodeURI(secret) + '</p>';
  setTimeout(() => { throw new Error('thrown ' + secret) });
  const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
  const work = navigator.serviceWorker.register('/worker.js?q=@QUOTED@').then(() =>
    navigator.serviceWorker.ready);
  const echoed = new Promise((done) => { socket.onmessage = done });
  socket.onopen = () => {
    socket.send(secret); socket.send(btoa(encodeURIComponent(secret)));
    for (const half of [secret.slice(0, 6), secret.slice(6)]) socket.send(half);
    socket.send(new TextEncoder().encode(secret));
  };
  const asked = ['GET', 'POST'].map((method) => fetch('/echo?q=' + encodeURIComponent(secret), {
    method, body: method === 'POST' ? JSON.stringify({ secret }) : undefined,
    headers: { authorization: 'Bearer ' + btoa(encodeURIComponent(secret)) },
  }).then((answer) => answer.text()));
  Promise.all([work, echoed, ...asked]).then(() => { ready.textContent = 'ready' });
</script>"""
WORKER = """
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
console.log('worker', decodeURIComponent(location.search));
"""


@contextlib.asynccontextmanager
async def echoing_site() -> AsyncIterator[str]:
    """Its address, for as long as the block lasts."""
    application = web.Application()
    application.router.add_get("/redirect/{secret}", _redirect)
    application.router.add_get("/page", _page)
    application.router.add_get("/socket", _socket)
    application.router.add_get("/download", _download)
    application.router.add_get("/worker.js", _worker)
    application.router.add_route("*", "/echo", _echo)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _redirect(request: web.Request) -> web.Response:
    secret = quote(request.query["q"], safe="")
    where = f"/page?q={secret}"
    return web.Response(status=302, headers={"Location": where, "Set-Cookie": f"seen={secret}"})


async def _page(request: web.Request) -> web.Response:
    secret = request.query["q"]
    texts = {
        "TITLE": html.escape(secret),
        "HTML": html.escape(secret),
        "START": html.escape(secret[:5]),
        "REST": html.escape(secret[5:]),
        "LETTERS": "".join(f"<span>{html.escape(letter)}</span>" for letter in secret),
        "QUOTED": quote(secret, safe=""),
        "JSON_TEXT": json.dumps(secret).replace("<", "\\u003c"),
    }
    page = PAGE
    for name, text in texts.items():
        page = page.replace(f"@{name}@", text)
    return web.Response(text=page, content_type="text/html")


async def _socket(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket


async def _download(request: web.Request) -> web.Response:
    return web.Response(body=request.query["q"].encode() * 3, content_type="application/zip")


async def _worker(_: web.Request) -> web.Response:
    return web.Response(text=WORKER, content_type="text/javascript")


async def _echo(request: web.Request) -> web.Response:
    told = {
        "headers": dict(request.headers),
        "query": dict(request.query),
        "body": (await request.read()).decode("utf-8", "replace"),
    }
    response = web.json_response(told)
    if "q" in request.query:
        response.headers["x-echo"] = quote(request.query["q"])
    response.enable_compression()
    return response
