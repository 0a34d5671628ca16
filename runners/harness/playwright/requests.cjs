'use strict';
// Each call of Playwright's `request` becomes a node: what was asked, what came, how long it took.

const { report } = require('./facts.cjs');
const lateAnswers = require('./late_answers.cjs');
const proxies = require('./proxies.cjs');

const MOST_REQUESTS = 500;
const MOST_EXCHANGES = 50;
/** Playwright's words where whoever disposes of requests gives no reason. */
const DISPOSED = 'Request context disposed.';

// A script may put others in their place.
const now = performance.now.bind(performance);
const date = Date.now;

const seen = new WeakSet();
const exchanges = new WeakMap(); // a context of Playwright's server half -> exchanges not yet taken
let count = 0;

function ms(value) {
  return Number.isFinite(value) && value >= 0 ? Math.round(value * 1000) / 1000 : null;
}

/** The phases of the last exchange, from Playwright's timings (in HAR's sense, but since the start). */
function phases(timings) {
  const dns = ms(timings.dns);
  const tls = ms(timings.ssl);
  const connected = ms(timings.connect);
  const tcp = connected === null ? null : ms(connected - (dns ?? 0) - (tls ?? 0));
  const firstByte = ms(timings.send + timings.wait - (connected ?? 0));
  return { dns, tcp, tls, firstByte, download: ms(timings.receive) };
}

/** Playwright's server half runs in this process and knows the phases. */
function listen(context) {
  const half = context._connection?.toImpl?.(context);
  if (!half?.on) return [];
  if (!exchanges.has(half)) {
    const kept = [];
    exchanges.set(half, kept);
    half.on('requestfinished', (exchange) => {
      kept.push(exchange);
      if (kept.length > MOST_EXCHANGES) kept.shift();
    });
  }
  return exchanges.get(half);
}

function take(kept, url) {
  const index = kept.findIndex((one) => String(one.requestEvent?.url) === url);
  return index < 0 ? null : kept.splice(index, 1)[0];
}

function answer(response, exchange) {
  return {
    url: response.url(),
    status: response.status(),
    statusText: response.statusText(),
    address: exchange?.serverIPAddress ?? null,
    bodyBytes: exchange?.body?.length ?? null,
    ...(exchange?.timings ? phases(exchange.timings) : {}), // before 1.41 there are none
  };
}

function node(options, startedAt) {
  const url = String(options.url ?? options.request?.url() ?? '');
  const method = String(options.method ?? options.request?.method() ?? 'GET').toUpperCase();
  return { fact: 'request', index: count++, startedAt, method, url };
}

function told(fact, start) {
  if (fact.index < MOST_REQUESTS) report({ ...fact, total: ms(now() - start) });
}

/** What `getAPIResponseTime` of @checkly/playwright-helpers asks a response for. */
function timed(response, { dns, tcp, tls, firstByte, download }, total) {
  response.timings = () => ({ dns, tcp, tls, firstByte, download, total });
}

async function observed(context, fetch, options) {
  const kept = listen(context);
  const start = now();
  const fact = node(options, date());
  try {
    const response = await fetch();
    const seen = answer(response, take(kept, response.url()));
    told({ ...fact, ...seen }, start);
    timed(response, seen, ms(now() - start));
    return response;
  } catch (error) {
    told({ ...fact, error: String(error?.message ?? error) }, start);
    throw error;
  }
}

/** From now on the calls of this context, and of all others of its class, are told. */
function watch(context) {
  const kind = context && Object.getPrototypeOf(context);
  if (!kind?._innerFetch || seen.has(kind)) return;
  seen.add(kind);
  const { _innerFetch: fetch, dispose } = kind;
  kind._innerFetch = function (options = {}) {
    return observed(this, () => fetch.call(this, options), options);
  };
  kind.dispose = function (options) {
    const reason = options?.reason ?? DISPOSED;
    return lateAnswers.whileClosing([this], reason, () => dispose.call(this, options));
  };
}

function wrapFactory(factory) {
  if (!factory?.newContext || seen.has(factory)) return;
  seen.add(factory);
  const newContext = factory.newContext;
  factory.newContext = async function (options) {
    const context = await newContext.call(this, proxies.inRequests(options));
    watch(context);
    return context;
  };
}

module.exports = { phases, take, watch, wrapFactory };
