// Runs before the viewer's service worker. What that makes of a trace comes from the page that was
// recorded, so each answer gets our policy on top of the viewer's own: it may show pictures and
// styles of the trace, and ask nobody for anything.
(() => {
  const POLICY = [
    "default-src 'none'", "script-src 'self' 'unsafe-inline'", "frame-src 'self' blob: data:",
    "style-src * 'unsafe-inline' blob: data:", "img-src * blob: data:", "font-src * blob: data:",
    "media-src * blob: data:", "connect-src 'none'", "form-action 'none'",
  ].join("; ");

  function restrict(response) {
    if (response.type === "basic") return response; // from our server, with a policy already
    if (response.type !== "default") return Response.error();
    const headers = new Headers(response.headers);
    headers.append("content-security-policy", POLICY);
    const { status, statusText } = response;
    return new Response(response.body, { status, statusText, headers });
  }

  const respondWith = FetchEvent.prototype.respondWith;
  FetchEvent.prototype.respondWith = function (answer) {
    return respondWith.call(this, Promise.resolve(answer).then(restrict));
  };
})();
