'use strict';
// Whether anything of the test under way will be kept. What Playwright would throw away as a test of
// a scheduled run passes is not made: a picture as each context closes, and an encoded video.

const Module = require('node:module');
const path = require('node:path');
const settings = require('./settings.cjs');
const { textsIn } = require('./sharing.cjs');

/** As Playwright closes contexts once the test, its hooks and the fixtures over them are through. */
const ENDED = 'Test ended.';
/** With these words, a script may decide itself what it keeps: `test.use({ video: 'on' })`. */
const DECIDED = /\bvideo\b|(?<!\.)\bscreenshot\b/;
/** A fixture of a script's own ends behind the contexts, where it may fail: `test.extend({ … })`. */
const EXTENDS = /(?<!\bexpect\s*\.\s*)\bextend\b/;
const ANY = /(?:)/; // options may come out of JSON

const over = new WeakSet(); // tests that Playwright closes the contexts of
let isOurs = null;

/** Whether the agent's wishes are all that decides. */
function decide() {
  if (!settings.script || settings.artifacts === 'on' || process[Symbol.for('picket.plain')]) return false;
  try {
    return !textsIn(settings.root, ANY).some((text) => DECIDED.test(text) || EXTENDS.test(text));
  } catch {
    return false;
  }
}

function mayBeLeft() {
  isOurs ??= decide();
  return isOurs;
}

/** The test under way; null outside of one. */
function testUnderWay() {
  try {
    return Module.createRequire(settings.script)('@playwright/test').test.info();
  } catch {
    return null;
  }
}

/** Whether the test under way has ended, and nothing of it will be kept. */
function isLeft() {
  const test = testUnderWay();
  return test !== null && over.has(test) && test.status === test.expectedStatus;
}

/** A context is about to close; `reason`: why, as the caller says. */
function closing(context, reason) {
  if (reason !== ENDED || !mayBeLeft()) return;
  const test = testUnderWay();
  if (test !== null) over.add(test);
  if (isLeft()) for (const page of context.pages()) page.screenshot = refuse;
}

async function refuse() {
  throw new Error('The test has passed.');
}

module.exports = { closing, isLeft, mayBeLeft };
