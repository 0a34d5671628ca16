'use strict';
// Trace, video and screenshots of a plain script, which has no test runner to make them.

const fs = require('node:fs');
const path = require('node:path');
const masking = require('./masking.cjs');
const settings = require('./settings.cjs');

const PICTURE_MS = 2000;

const traced = new Map(); // contexts that we trace -> how to stop it
const isPlain = () => Boolean(process[Symbol.for('picket.plain')]);
let count = 0;

/** Traces are written where the agent finds them, should nobody bring them to an end; and when the
 * run is stopped, they come to an end before the browser does. */
function launchOptions() {
  return { tracesDir: path.join(settings.output, '.traces'), handleSIGINT: false };
}

/** The script's options for a context, with a video if there are to be any. */
function options(given = {}) {
  if (!isPlain() || !settings.video || given.recordVideo) return given;
  return { ...given, recordVideo: { dir: path.join(settings.output, 'video') } };
}

async function begin(context) {
  if (!isPlain()) return;
  const { start, stop } = context.tracing;
  const name = `trace-${++count}.zip`;
  await start.call(context.tracing, { screenshots: true, snapshots: true, sources: true });
  traced.set(context, () => stop.call(context.tracing, { path: path.join(settings.output, name) }));
  context.tracing.start = async function (...given) {
    // The script traces by itself: only one can.
    context.tracing.start = start;
    traced.delete(context);
    await stop.call(this);
    return start.apply(this, given);
  };
}

async function finish(context) {
  const stop = traced.get(context);
  traced.delete(context);
  await stop?.().catch(() => {});
}

async function picture(page) {
  const name = `screenshot-${++count}.png`;
  const take = (options) => page.screenshot(options);
  const options = { path: path.join(settings.output, name), timeout: PICTURE_MS };
  await masking.automatic(page, take, options).catch(() => {});
}

/** The script has ended: what is still open is shown as it is now. */
async function finishAll(contexts) {
  if (!contexts.length) return;
  await Promise.all(contexts.flatMap((context) => context.pages()).map(picture));
  await Promise.all(contexts.map(finish));
}

/** Whether there are traces that nobody has brought to an end. */
const areOpen = () => traced.size > 0;

/** A scheduled run that passed keeps no files. */
function discard() {
  fs.rmSync(settings.output, { recursive: true, force: true });
}

module.exports = { areOpen, begin, discard, finish, finishAll, launchOptions, options };
