'use strict';
// The pictures that are taken without the script's asking show no secret in text: Playwright's own
// mask lies over it. All is compared in Playwright's isolated world or here, never in the page's.

const { createHash } = require('node:crypto');
const { report } = require('./facts.cjs');
const lateAnswers = require('./late_answers.cjs');
const { anySecret, isBegun, spelled } = require('./likenesses.cjs');
const secrets = require('./secrets.cjs');
const { quietly } = require('./quietly.cjs');
const typing = require('./typing.cjs');

const LOOK_MS = 1500; // a page that hangs must not cost the picture
const FIELD_MS = 500;
const MOST_FIELDS = 200;
const FIELDS = 'input, textarea, select';
/** What shows its text where a style says so, and is passed over by whoever looks for texts. */
const SILENT = ['style', 'script', 'noscript', 'head', 'template'].map((one) => `${one}:visible`).join(', ');
const FOCUSED = ':is(input, textarea, [contenteditable]):focus';
const NAMES_A_LINE = 100;
/** Of Playwright's own tests: pictures do not wait for fonts. */
const NO_FONTS = 'PW_TEST_SCREENSHOT_NO_FONTS_READY';

/** How Playwright Test takes pictures by itself, in all its versions. */
function isAutomatic(given) {
  return given?.caret === 'initial' && given.timeout === 5000 && typeof given.path === 'string';
}

/** Those of a frame's fields whose value holds a secret, or some letters of it, by their place. */
async function loudFields(frame, secret) {
  const fields = frame.locator(FIELDS);
  const count = await fields.count();
  if (count > MOST_FIELDS) throw new Error('There are too many fields.');
  const places = [...Array(count).keys()];
  const values = await Promise.all(
    places.map((at) => fields.nth(at).inputValue({ timeout: FIELD_MS })),
  );
  const together = spelled(values);
  return places.filter((at) => secret.test(values[at]) || isBegun(values[at]) || together.has(at));
}

async function fieldsOf(page, secret) {
  const frames = page.frames();
  const places = await Promise.all(frames.map((frame) => loudFields(frame, secret)));
  return new Map(frames.map((frame, at) => [frame, places[at]]));
}

/** Choices that show another text than their own. */
function labelled(frame, secret) {
  const byAlt = frame.getByAltText(secret)._selector;
  const isThere = byAlt.includes('[alt=');
  if (!isThere) throw new Error('This Playwright looks for attributes in another way.');
  const label = frame.locator(byAlt.replace('[alt=', '[label='));
  return [frame.locator('select').filter({ has: label }), label];
}

function maskOf(fields, secret) {
  const isTyping = typing.typedOf(secrets.values()).length > 0;
  return [...fields].flatMap(([frame, places]) => [
    frame.getByText(secret),
    frame.getByPlaceholder(secret),
    frame.getByAltText(secret),
    ...labelled(frame, secret),
    frame.locator('select').filter({ hasText: secret }),
    frame.locator(SILENT),
    ...(isTyping ? [frame.locator(FOCUSED)] : []),
    ...places.map((at) => frame.locator(FIELDS).nth(at)),
  ]);
}

/** `known`: the secrets that were looked for. Only who knows the picture and one can tell its name. */
function tell(fact, picture, known) {
  const sha256 = createHash('sha256').update(picture).digest('hex');
  const names = known.map((one) => createHash('sha256').update(sha256 + one).digest('hex').slice(0, 16));
  for (let at = 0; at < names.length; at += NAMES_A_LINE) {
    report({ fact, sha256, knew: names.slice(at, at + NAMES_A_LINE) });
  }
}

/** Null: the page did not tell in time, or could not be looked at. */
async function inTime(looking) {
  const late = new Promise((done) => setTimeout(done, LOOK_MS, null).unref());
  return Promise.race([looking.catch(() => null), late]);
}

/** Whether no field came to hold a secret, and no frame came, while the picture was taken. */
function isAsBefore(before, after) {
  if (after === null) return false;
  return [...after].every(([frame, places]) =>
    before.has(frame) && places.every((at) => before.get(frame).includes(at)));
}

/** A picture with masks; the agent is told which secrets it shows none of. */
async function masked(page, take, given) {
  const known = secrets.values();
  const secret = anySecret();
  if (secret === null) return take(given);
  const before = await inTime(quietly(page, () => fieldsOf(page, secret)));
  if (before === null) return take(given);
  const mask = [...(given.mask ?? []), ...maskOf(before, secret)];
  const picture = await quietly(page, () => take({ ...given, mask }));
  const after = await inTime(quietly(page, () => fieldsOf(page, secret)));
  if (isAsBefore(before, after)) {
    tell('masked', picture, known);
  }
  return picture;
}

/** How many elements of the page show a secret. */
async function loudPlaces(page, secret) {
  const fields = await fieldsOf(page, secret);
  const counts = await Promise.all(maskOf(fields, secret).map((locator) => locator.count()));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A picture of the script's own stays as it is; the agent is told if its page shows no secret. */
async function judged(page, take, given) {
  const known = secrets.values();
  if (anySecret() === null) return take(given);
  const look = () => inTime(quietly(page, () => loudPlaces(page, anySecret())));
  const looking = look();
  const picture = await take(given);
  // Playwright waits for fonts and more: what was shown meanwhile is on the picture too.
  if ((await looking) === 0 && (await look()) === 0) tell('unshowing', picture, known);
  return picture;
}

/** Whether each frame of a page has loaded; null: the page is busy, and has no picture. */
async function hasLoaded(page) {
  const ask = (frame) => inTime(frame.evaluate(() => document.readyState));
  const [state, ...others] = await quietly(page, () => Promise.all(page.frames().map(ask)));
  return state === null ? null : [state, ...others].every((one) => one === 'complete');
}

/** Playwright waits for fonts, which a page that still loads may never have. */
async function withoutFonts(act) {
  process.env[NO_FONTS] = '1';
  try {
    return await act();
  } finally {
    delete process.env[NO_FONTS];
  }
}

/** A picture that the script does not ask for, which waits for nothing. */
async function automatic(page, take, given) {
  const isLoaded = await hasLoaded(page);
  if (isLoaded === null) throw new Error('The page does not answer.');
  const act = () => masked(page, take, given);
  return isLoaded ? act() : withoutFonts(act);
}

function wrap(page) {
  const screenshot = page.screenshot;
  page.screenshot = function (given) {
    const take = (options) => screenshot.call(this, options);
    if (!isAutomatic(given)) return judged(this, take, given);
    return lateAnswers.during(() => automatic(this, take, given));
  };
}

module.exports = { automatic, wrap };
