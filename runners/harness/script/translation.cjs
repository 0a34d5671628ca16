// Scripts with import statements or TypeScript's types, in the JavaScript that they stand for.
'use strict';

const { SourceMap } = require('node:module');
const path = require('node:path');

// What Playwright reads its test files with: the same script runs there and here.
const TRANSLATOR = 'playwright/lib/transform/babelBundle.js';
const PLACE = /^(.*?):(\d+)(?::(\d+))?$/;
const maps = new Map();

function translator(modules) {
  try {
    return require(path.join(modules, TRANSLATOR));
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

/** Whether Node lets us have it; where it does not, no script is to blame. */
function isReadable(modules) {
  return process.permission.has('fs.read', path.join(modules, TRANSLATOR));
}

/** The reader's own words, without the path and the picture that it puts around them. */
function complaint(error, file, name) {
  const { line, column } = error.loc;
  const [said] = error.message.split(` (${line}:${column})`, 1);
  const words = said.slice(said.indexOf(name) + name.length + 2);
  const told = new SyntaxError(words);
  told.stack = `${file}:${line}:${column + 1}\nSyntaxError: ${words}`;
  return told;
}

/** Two readers met a fault; where they agree on the line, Node's words are the known ones. */
function nearer(because, error, file, name) {
  const agree = !error.loc || String(because.stack).startsWith(`${file}:${error.loc.line}\n`);
  return agree ? because : complaint(error, file, name);
}

function translate(content, file, modules, because) {
  const known = translator(modules);
  if (known === null) throw because;
  const name = `${file}.ts`;
  try {
    const { code, map } = known.babelTransform(content, name, false, [], []);
    maps.set(file, new SourceMap(map));
    return code;
  } catch (error) {
    throw nearer(because, error, file, name);
  }
}

/** Most files are plain, and the translator takes its time: it is asked where Node gives up. */
function compileAny(compile, content, file, modules) {
  try {
    return compile(content);
  } catch (because) {
    if (!(because instanceof SyntaxError)) throw because;
    return compile(translate(content, file, modules, because));
  }
}

/** Where a place of the translation is in the user's own file. */
function origin(place) {
  const [, file, line, column = '1'] = PLACE.exec(place) ?? [];
  const found = maps.get(file)?.findOrigin(Number(line), Number(column));
  return found?.lineNumber ? `${file}:${found.lineNumber}:${found.columnNumber}` : place;
}

module.exports = { compileAny, isReadable, origin };
