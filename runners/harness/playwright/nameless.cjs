'use strict';
// A script of a check without `scriptPath` has no ending that tells its language: where it is no
// JavaScript, and TypeScript, its types go, before anything reads it.

const fs = require('node:fs');
const Module = require('node:module');
const vm = require('node:vm');

const IMPORT = /^[ \t]*import\b(?:[^'";]*?\bfrom)?\s*(['"])[^'"\n]*\1/gm;
const EXPORT = /^[ \t]*export\s+(?:default\s+)?/gm;

function compiles(body) {
  try {
    new vm.Script(`(async function (exports, require, module, __filename, __dirname) {${body}\n})`);
    return true;
  } catch {
    return false;
  }
}

/** Whether it is JavaScript, of any kind of module. */
function isJavaScript(source) {
  return compiles(source) || compiles(source.replace(IMPORT, '').replace(EXPORT, ''));
}

/** Null: it is no TypeScript. Enumerations and the like have to be put into other words, by which
 * what comes behind them may be in other places. */
function withoutTypes(source) {
  for (const mode of ['strip', 'transform']) {
    try {
      return Module.stripTypeScriptTypes(source, { mode });
    } catch {
      // the other way, if there is one
    }
  }
  return null;
}

/** The script as Node reads it. */
function asJavaScript(source) {
  return isJavaScript(source) ? source : (withoutTypes(source) ?? source);
}

/** In its place. */
function rewrite(file) {
  const source = fs.readFileSync(file, 'utf8');
  const text = asJavaScript(source);
  if (text !== source) fs.writeFileSync(file, text);
}

module.exports = { asJavaScript, rewrite };
