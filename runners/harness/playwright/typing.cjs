'use strict';
// An ear for what is typed letter by letter: a page sees its field grow, and may tell each state of
// it. The agent hides the beginnings of a secret that was typed so; pictures get masks over them.

const { report } = require('./facts.cjs');
const { BACKSPACE, DELETE, isLetter, letterOf } = require('./keys.cjs');

const SHORTEST = 4; // as the agent has it: shorter beginnings stay
const PIECE_CHARS = 700; // in base64, with what is around it, a piece fits on a line of facts
const MOST_LINES = 2000; // the agent reads 20,000 lines of a run
const MOST_CHARS = 1 << 16;

/** By Playwright's inner call, what it types, or takes away; null: who types on may do so elsewhere. */
const TYPING = {
  type: ({ text }) => text,
  keyboardType: ({ text }) => text,
  keyboardInsertText: ({ text }) => (isLetter(text) ? text : ''), // whole, a page sees nothing grow
  fill: ({ value }) => (isLetter(value) ? value : ''), // of fields for a letter each a page tells all
  press: ({ key }) => letterOf(key, isShifted),
  keyboardPress: ({ key }) => letterOf(key, isShifted),
  keyboardDown: ({ key }) => (hold(key) ? letterOf(key, isShifted) : null),
  keyboardUp: ({ key }) => release(key),
};

const { from } = Buffer;

let typed = '';
let corrected = '';
let isShifted = false;
let isAstray = false; // what is typed next may stand before what was typed
let isUnheard = false; // anything may have been typed
let lines = 0;

/** Whether what is typed meanwhile is what its keys say. */
function hold(key) {
  isShifted ||= key.startsWith('Shift');
  return !/^(?:Control|Alt|Meta)/.test(key);
}

function release(key) {
  if (key.startsWith('Shift')) isShifted = false;
  return '';
}

function tellAny() {
  if (!isUnheard) report({ fact: 'typed', from: process.pid, text: null });
  isUnheard = true;
}

function tell(text) {
  const letters = [...text];
  for (let at = 0; at < letters.length && !isUnheard; at += PIECE_CHARS) {
    const piece = letters.slice(at, at + PIECE_CHARS).join('');
    if (lines++ === MOST_LINES) tellAny();
    else report({ fact: 'typed', from: process.pid, text: from(piece).toString('base64') });
  }
}

/** A page may take a key for another field than it was typed into: both are remembered. */
function note(text) {
  if (text === BACKSPACE) {
    const last = [...corrected.slice(-2)].at(-1) ?? '';
    corrected = corrected.slice(0, corrected.length - last.length);
    return;
  }
  typed = (typed + text).slice(-MOST_CHARS);
  corrected = (corrected + text).slice(-MOST_CHARS);
}

function hear(method, params) {
  const text = method in TYPING ? TYPING[method](params) : '';
  if (text === null) {
    isAstray ||= typed !== '';
  } else if (isAstray && String(text).trim()) {
    tellAny();
  } else if (text && text !== DELETE) {
    note(String(text));
    tell(String(text)); // before the page sees it: a run that is ended while it types has told it
  }
}

/** From now on this Playwright's typing is heard, in browsers that it connects to as well. */
function watch(playwright) {
  const kind = Object.getPrototypeOf(playwright.chromium._connection ?? {});
  const send = kind.sendMessageToServer;
  if (typeof send !== 'function') {
    tellAny();
    return;
  }
  kind.sendMessageToServer = function (object, method, params, ...more) {
    try {
      hear(method, params);
    } catch {
      tellAny();
    }
    return send.call(this, object, method, params, ...more);
  };
}

/** Of these secrets, those of which a beginning was typed in this process. */
function typedOf(secrets) {
  const isTyped = (beginning) => typed.includes(beginning) || corrected.includes(beginning);
  return secrets.filter((secret) => isUnheard || isTyped(secret.slice(0, SHORTEST)));
}

module.exports = { SHORTEST, hear, typedOf, watch };
