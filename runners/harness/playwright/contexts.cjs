'use strict';
// Watches a browser context: its pages' measures, errors and console.

const fs = require('node:fs');
const path = require('node:path');
const settings = require('./settings.cjs');
const { report } = require('./facts.cjs');
const keeping = require('./keeping.cjs');
const lateAnswers = require('./late_answers.cjs');
const masking = require('./masking.cjs');
const { Pace } = require('./pace.cjs');
const { PageBook } = require('./pages.cjs');
const plainFiles = require('./plain_files.cjs');
const proxies = require('./proxies.cjs');
const { quietly } = require('./quietly.cjs');

const BINDING = '__picketMeasured';
const SETTLE_MS = 300;
/** Playwright's words where whoever closes gives no reason. */
const CLOSED = 'Target page, context or browser has been closed';
const MOST_LOG_LINES = 1000;
const LEVELS = { error: 'ERROR', warning: 'WARN', assert: 'ERROR', debug: 'DEBUG' };

const pace = new Pace(report);
const book = new PageBook((index, fact) => pace.tell(index, fact));
let logLines = 0;
let vitals = null;

function pageScript() {
  if (vitals === null) {
    const library = fs.readFileSync(settings.vitals, 'utf8');
    const ours = fs.readFileSync(path.join(__dirname, 'vitals.page.js'), 'utf8');
    vitals = `(() => {\n${library}\n(${ours.trim().replace(/;$/, '')})(webVitals, '${BINDING}');\n})()`;
  }
  return vitals;
}

function log(level, message) {
  if (logLines++ < MOST_LOG_LINES) report({ fact: 'log', level, message });
}

/** The page that a request is for; null for a service worker, or a page that is not there yet. */
function pageOf(request) {
  try {
    return request.frame().page();
  } catch {
    return null;
  }
}

function onRequest(request) {
  if (!request.isNavigationRequest()) return;
  const page = pageOf(request);
  if (page && request.frame() === page.mainFrame()) book.requested(page, request.url());
}

function onRequestFailed(request) {
  const page = pageOf(request);
  const reason = request.failure()?.errorText ?? '';
  // The page or the script called it off itself: going elsewhere does so all the time.
  if (!page || reason.includes('ERR_ABORTED')) return;
  book.troubled(page, 'networkErrors');
  log('WARN', `Request failed: ${request.method()} ${request.url()} ${reason}`);
}

function onResponse(response) {
  if (response.status() < 400) return;
  const page = pageOf(response.request());
  if (page) book.troubled(page, 'networkErrors');
}

function onConsole(message) {
  const page = message.page();
  if (page && message.type() === 'error') book.troubled(page, 'consoleErrors');
  log(LEVELS[message.type()] ?? 'INFO', `Page console: ${message.text()}`);
}

function onWebError(error) {
  const page = error.page();
  if (page) book.troubled(page, 'documentErrors');
  log('ERROR', `Page error: ${error.error()?.message ?? error.error()}`);
}

function listen(context) {
  const on = (event, act) => context.on(event, (seen) => guarded(act, seen));
  on('request', onRequest);
  on('requestfailed', onRequestFailed);
  on('response', onResponse);
  on('console', onConsole);
  on('weberror', onWebError);
  on('page', (page) => page.on('crash', () => log('ERROR', `Page crashed: ${page.url()}`)));
}

/** What we count must never be what fails the check. */
function guarded(act, seen) {
  try {
    act(seen);
  } catch {
    // The page has gone in the meantime.
  }
}

async function measure(context) {
  await context.exposeBinding(BINDING, ({ page }, text) => {
    guarded(() => book.measured(page, JSON.parse(text)));
  });
  await context.addInitScript({ content: pageScript() });
}

/** Let what is on the screen be measured before it goes: a paint is told a frame later. */
async function settle(page) {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const late = new Promise((done) => setTimeout(done, SETTLE_MS).unref());
  await Promise.race([page.evaluate(painted).catch(() => {}), late]);
}

async function settleAll(object, pages) {
  if (settings.vitals) {
    await quietly(object, () => Promise.all(pages.map(settle))).catch(() => {});
  }
  pace.flush();
}

function settleBeforeClose(page) {
  const close = page.close;
  page.close = async function (...given) {
    return whileClosing([page], given[0], async () => {
      if (!page.isClosed()) await settleAll(page, [page]);
      return close.apply(this, given);
    });
  };
}

/** `given`: whoever closes may give a reason. */
function whileClosing(objects, given, act) {
  return lateAnswers.whileClosing(objects, given?.reason ?? CLOSED, act);
}

/** What a context has to show is taken before it goes; its browser may take it along. */
async function beforeEnd(context) {
  await settleAll(context, context.pages());
  await plainFiles.finish(context);
}

function endBeforeClose(context) {
  const close = context.close;
  context.close = async function (...given) {
    return whileClosing([context], given[0], async () => {
      await beforeEnd(context);
      keeping.closing(context, given[0]?.reason);
      return close.apply(this, given);
    });
  };
}

function maskPictures(context) {
  context.on('page', masking.wrap);
  context.pages().forEach(masking.wrap);
}

async function watch(context) {
  listen(context);
  maskPictures(context);
  try {
    if (settings.vitals) await quietly(context, () => measure(context));
    await quietly(context, () => plainFiles.begin(context));
    endBeforeClose(context);
    context.on('page', settleBeforeClose);
  } catch (error) {
    log('WARN', `This context is not measured: ${error?.message ?? error}`);
  }
}

/** The script's options for a context, with what is ours to decide. */
function options(given = {}) {
  return proxies.inContext(plainFiles.options(given));
}

module.exports = { beforeEnd, options, watch, whileClosing };
