// Scripts with import statements or TypeScript's types, in the JavaScript that they stand for.
'use strict';

const { SourceMap } = require('node:module');
const path = require('node:path');

// What Playwright reads its test files with: the same script runs there and here.
const TRANSLATOR = 'playwright/lib/transform/babelBundle.js';
const PLUGIN = path.join(__dirname, 'grammar.cjs');
const IMPORT_CALL = /\bimport\s*\(/;
const FAULT = / \((\d+):(\d+)\)/;
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
function complaint(said, [place, line, column], file, name) {
  const words = said.slice(said.indexOf(name) + name.length + 2, said.indexOf(place));
  const told = new SyntaxError(words);
  told.stack = `${file}:${line}:${Number(column) + 1}\nSyntaxError: ${words}`;
  return told;
}

/** Two readers met a fault; where they agree on the line, Node's words are the known ones. */
function nearer(because, error, file, name) {
  // Of Babel's versions some count the columns of `loc` from 0, others from 1; all say it so.
  const found = FAULT.exec(error.message);
  const agree = !found || String(because.stack).startsWith(`${file}:${found[1]}\n`);
  return agree ? because : complaint(error.message, found, file, name);
}

/** No reason: Node reads the file, and only its calls of `import` are to be translated. */
function translate(content, file, modules, because) {
  const known = translator(modules);
  if (known === null) throw because;
  const name = `${file}.ts`;
  const grammar = [PLUGIN, { isPlain: !because }];
  try {
    const { code, map } = known.babelTransform(content, name, false, [grammar], []);
    maps.set(file, new SourceMap(map));
    return code;
  } catch (error) {
    throw because ? nearer(because, error, file, name) : error;
  }
}

/** With its calls of `import` made ours; as it was, where nobody can. */
function withImports(content, file, modules) {
  try {
    return translate(content, file, modules, null);
  } catch {
    return content;
  }
}

/** JavaScript without the type arguments that it reads as comparisons. */
function withoutTypeArguments(content) {
  if (!content.includes('<')) return content; // most scripts
  const { mayHoldTypeArguments, withoutTypes } = require('./types.cjs');
  return mayHoldTypeArguments(content) ? (withoutTypes(content) ?? content) : content;
}

/** Most files are plain, and the translator takes its time: it is asked where Node gives up. */
function compileAny(compile, given, file, modules) {
  const content = withoutTypeArguments(given);
  let plain;
  try {
    plain = compile(content);
  } catch (because) {
    if (!(because instanceof SyntaxError)) throw because;
    return compile(translate(content, file, modules, because));
  }
  return IMPORT_CALL.test(content) ? compile(withImports(content, file, modules)) : plain;
}

/** Where a place of the translation is in the user's own file. */
function origin(place) {
  const [, file, line, column = '1'] = PLACE.exec(place) ?? [];
  const found = maps.get(file)?.findOrigin(Number(line), Number(column));
  return found?.lineNumber ? `${file}:${found.lineNumber}:${found.columnNumber}` : place;
}

module.exports = { compileAny, isReadable, origin };
