'use strict';
// Steps as facts, with the place in the user's own files where each is written.

const path = require('node:path');
const settings = require('./settings.cjs');
const { report } = require('./facts.cjs');

const MOST_STEPS = 5000; // one begins and ends by a line each; the agent reads 20,000 lines

const now = performance.now.bind(performance); // a script may put another in its place

const begun = new Map();
let count = 0;

/** A place as `script.js:5:14`, if it is in the user's own files; null otherwise. */
function place(location) {
  if (!location?.file) return null;
  const file = location.file.replace(/^file:\/\//, '');
  if (!path.isAbsolute(file)) return null; // a part of Node itself
  const inside = path.relative(settings.root, file);
  if (inside.startsWith('..') || path.isAbsolute(inside)) return null;
  if (inside.split(path.sep).includes('node_modules')) return null;
  return `${inside}:${location.line}:${location.column}`;
}

function began(key, title, category, location) {
  if (count >= MOST_STEPS) return;
  const id = count++;
  begun.set(key, { id, at: now() });
  report({ fact: 'stepBegan', id, title, category, where: place(location) });
}

function ended(key, error) {
  const step = begun.get(key);
  if (!step) return;
  begun.delete(key);
  const tookMs = Math.round((now() - step.at) * 10) / 10;
  report({ fact: 'stepEnded', id: step.id, tookMs, error: error ?? null });
}

module.exports = { began, ended, place };
