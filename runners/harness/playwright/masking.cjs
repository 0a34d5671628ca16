'use strict';
// The pictures that are taken without the script's asking show no secret in text: Playwright's own
// mask lies over it. All is compared in Playwright's isolated world or here, never in the page's.

const { createHash } = require('node:crypto');
const { report } = require('./facts.cjs');
const secrets = require('./secrets.cjs');
const { quietly } = require('./quietly.cjs');

const LOOK_MS = 1500; // a page that hangs must not cost the picture
const FIELD_MS = 500;
const MOST_FIELDS = 200;
const MOST_CHARS = 200; // of a long secret: an element that shows it shows its beginning
const FIELDS = 'input, textarea, select';

/** How Playwright Test takes pictures by itself, in all its versions. */
function isAutomatic(given) {
  return given?.caret === 'initial' && given.timeout === 5000 && typeof given.path === 'string';
}

/** A secret as pages show it. */
function formsOf(secret) {
  const bytes = Buffer.from(secret);
  return [
    secret,
    encodeURIComponent(secret),
    encodeURI(secret),
    new URLSearchParams([['', secret]]).toString().slice(1),
    JSON.stringify(secret).slice(1, -1),
    secret.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
    bytes.toString('hex'),
  ];
}

function patternOf(form) {
  const literal = form.slice(0, MOST_CHARS).trim().replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  return literal.replace(/\s+/g, '\\s+');
}

/** What matches any secret that is known now; null: there is none. */
function anySecret() {
  const forms = new Set(secrets.values().flatMap(formsOf));
  const patterns = [...forms].map(patternOf).filter(Boolean);
  return patterns.length ? new RegExp(patterns.join('|'), 'i') : null;
}

/** Those of a frame's fields whose value holds a secret, by their place. */
async function loudFields(frame, secret) {
  const fields = frame.locator(FIELDS);
  const count = await fields.count();
  if (count > MOST_FIELDS) throw new Error('There are too many fields.');
  const places = [...Array(count).keys()];
  const values = await Promise.all(
    places.map((at) => fields.nth(at).inputValue({ timeout: FIELD_MS })),
  );
  return places.filter((at) => secret.test(values[at]));
}

async function fieldsOf(page, secret) {
  const frames = page.frames();
  const places = await Promise.all(frames.map((frame) => loudFields(frame, secret)));
  return new Map(frames.map((frame, at) => [frame, places[at]]));
}

function maskOf(fields, secret) {
  return [...fields].flatMap(([frame, places]) => [
    frame.getByText(secret),
    frame.getByPlaceholder(secret),
    frame.locator('select').filter({ hasText: secret }),
    ...places.map((at) => frame.locator(FIELDS).nth(at)),
  ]);
}

function tell(fact, picture) {
  report({ fact, sha256: createHash('sha256').update(picture).digest('hex') });
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

/** A picture with masks; the agent is told that it shows no secret that is known so far. */
async function masked(page, take, given) {
  const secret = anySecret();
  if (secret === null) return take(given);
  const before = await inTime(quietly(page, () => fieldsOf(page, secret)));
  if (before === null) return take(given);
  const mask = [...(given.mask ?? []), ...maskOf(before, secret)];
  const picture = await quietly(page, () => take({ ...given, mask }));
  const after = await inTime(quietly(page, () => fieldsOf(page, secret)));
  if (isAsBefore(before, after)) {
    tell('masked', picture);
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
  const secret = anySecret();
  if (secret === null) return take(given);
  const looking = inTime(quietly(page, () => loudPlaces(page, secret)));
  const picture = await take(given);
  if ((await looking) === 0) tell('unshowing', picture);
  return picture;
}

function wrap(page) {
  const screenshot = page.screenshot;
  page.screenshot = function (given) {
    const take = (options) => screenshot.call(this, options);
    return (isAutomatic(given) ? masked : judged)(this, take, given);
  };
}

module.exports = { anySecret, masked, wrap };
