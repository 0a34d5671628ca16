'use strict';
// What we look at as a test ends takes time, in which a call that the script does not await could
// succeed: it would fail without us. So our looks take no time as far as its calls can tell.

const { setTimeout } = require('node:timers'); // a script may put another in the global one's place

/** Calls that Playwright itself forgives as their page goes. */
const FORGIVEN = ['Artifact', 'BindingCall', 'Dialog', 'Route', 'Tracing', 'WebSocketRoute'];
const ENDS = ['close', 'dispose'];

const now = performance.now.bind(performance);

const closings = new WeakMap(); // pages and contexts that close -> since which call, why, and its end
let calls = 0;
let looks = 0;
let look = null; // the look under way: since which call, since when, and its end

/** Whether a call was under way as something that its object belongs to began to close; null: not. */
function closingOf(object, call) {
  for (let owner = object; owner; owner = owner._parent) {
    const closing = closings.get(owner);
    if (closing && call < closing.call) return closing;
  }
  return null;
}

/** Hold an answer back for as long as it would have taken without the look. */
async function holdBack(call) {
  if (look === null || call >= look.call) return;
  const tookMs = now() - look.beganAt;
  await look.over;
  await new Promise((done) => setTimeout(done, tookMs));
}

async function answered(object, method, sent) {
  const call = calls++;
  const answer = await sent;
  if (FORGIVEN.includes(object._type) || ENDS.includes(method)) return answer;
  await holdBack(call);
  const closing = closingOf(object, call);
  if (closing === null) return answer;
  await closing.over; // no sooner: an error that nobody catches ends what is left of the test
  throw new Error(closing.reason);
}

/** From now on the answers of this Playwright pass by here. */
function watch(playwright) {
  const kind = Object.getPrototypeOf(playwright.chromium._connection ?? {});
  const send = kind.sendMessageToServer;
  if (typeof send !== 'function') return;
  kind.sendMessageToServer = function (object, method, ...more) {
    return answered(object, method, send.call(this, object, method, ...more));
  };
}

/** Close pages or contexts, which `act` does; `reason`: what Playwright tells calls under way. */
function whileClosing(objects, reason, act) {
  const call = calls;
  const over = (async () => act())();
  const closing = { call, reason, over: over.then(() => {}, () => {}) };
  for (const one of objects) if (!closings.has(one)) closings.set(one, closing);
  return over;
}

/** Look at a page that the script may still be busy with. */
async function during(act) {
  if (looks++ === 0) {
    look = { call: calls, beganAt: now() };
    look.over = new Promise((done) => { look.end = done; });
  }
  try {
    return await act();
  } finally {
    if (--looks === 0) {
      look.end();
      look = null;
    }
  }
}

module.exports = { during, watch, whileClosing };
