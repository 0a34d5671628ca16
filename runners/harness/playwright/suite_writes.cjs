'use strict';
// Which files the suite's reporters write: those that the process of the test runner writes while
// they are told of tests. Tests, web servers and installations are other processes, and a global
// setup, which may write passwords and sessions, ends before.

const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { report } = require('./facts.cjs');
const settings = require('./settings.cjs');

const MOST_FILES = 2000;
const FIRST = ['appendFile', 'createWriteStream', 'open', 'writeFile'];
const SECOND = ['copyFile', 'cp', 'rename'];
const WRITES = fs.constants.O_WRONLY | fs.constants.O_RDWR;

const written = new Set();
let isWatching = false;

function isRead(name, flags) {
  if (!name.startsWith('open')) return false;
  return typeof flags === 'number' ? !(flags & WRITES) : !/[wa+]/.test(flags ?? 'r');
}

/** The path within the suite. Null: it is elsewhere, or a descriptor. */
function pathOf(given) {
  if (typeof given !== 'string' && !(given instanceof URL)) return null;
  const file = path.resolve(given instanceof URL ? fileURLToPath(given) : given);
  return file.startsWith(`${settings.suite}${path.sep}`) ? file : null;
}

function note(given) {
  const file = pathOf(given);
  if (!file || written.has(file) || written.size >= MOST_FILES) return;
  written.add(file);
  report({ fact: 'wrote', path: file });
}

function watch(owner, name, argument) {
  const call = owner[name];
  if (typeof call !== 'function') return;
  owner[name] = function (...given) {
    try {
      if (isWatching && !isRead(name, given[1])) note(given[argument]);
    } catch {
      // It is no path: the call itself says so.
    }
    return call.apply(this, given);
  };
}

/** To be called before a reporter is loaded. */
function install() {
  for (const [names, argument] of [[FIRST, 0], [SECOND, 1]]) {
    for (const name of names) {
      watch(fs, name, argument);
      watch(fs, `${name}Sync`, argument);
      watch(fs.promises, name, argument);
    }
  }
  syncBuiltinESMExports();
}

/** The reporters are told of the first test now. */
function begin() {
  isWatching = true;
}

module.exports = { begin, install };
