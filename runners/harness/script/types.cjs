// Takes TypeScript's types out of a file by Node's own parser; all else keeps its place.
'use strict';

const Module = require('node:module');

const BODY = 'async function body() {';

/** Whether JavaScript may be TypeScript all the same: `a<b>(c)` compares there, and calls here. */
function mayHoldTypeArguments(source) {
  const begin = source.indexOf('<');
  return begin >= 0 && /[^=]>/.test(source.slice(begin));
}

function strip(source, mode) {
  try {
    return Module.stripTypeScriptTypes(source, { mode });
  } catch {
    return null;
  }
}

/** The body of a function, which may `return`. */
function stripBody(source) {
  const text = strip(`${BODY}${source}\n}`, 'strip');
  return text === null ? null : text.slice(BODY.length, -'\n}'.length);
}

/** Null: it holds more than types and JavaScript, or is neither. */
function withoutTypes(source) {
  return strip(source, 'strip') ?? stripBody(source);
}

/** With enumerations and the like in other words, by which what comes behind them may move. */
function withoutTypeScript(source) {
  return withoutTypes(source) ?? strip(source, 'transform');
}

module.exports = { mayHoldTypeArguments, withoutTypeScript, withoutTypes };
