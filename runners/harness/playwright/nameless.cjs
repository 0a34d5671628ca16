'use strict';
// A script of a check without `scriptPath` has no ending that tells its language: whatever can be
// TypeScript loses its types, before anything reads it.

const fs = require('node:fs');
const vm = require('node:vm');
const { mayHoldTypeArguments, withoutTypeScript } = require('../script/types.cjs');

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

/** The script as Node reads it. */
function asJavaScript(source) {
  if (isJavaScript(source) && !mayHoldTypeArguments(source)) return source;
  return withoutTypeScript(source) ?? source;
}

/** In its place. */
function rewrite(file) {
  const source = fs.readFileSync(file, 'utf8');
  const text = asJavaScript(source);
  if (text !== source) fs.writeFileSync(file, text);
}

module.exports = { asJavaScript, rewrite };
