'use strict';
// Keeps Babel out of runs whose files Node reads as they are: to load and run it costs a tenth of a
// short run. Whatever is not surely read alike goes the usual way.

const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');

const BABEL = /[/\\]transform[/\\]babelBundle$/;
const PARTS = ['babelParse', 'codeFrameColumns', 'declare', 'traverse'];
const NAME = '[A-Za-z_$][\\w$]*';
const NAMED = `\\{\\s*(${NAME}(?:\\s+as\\s+${NAME})?(?:\\s*,\\s*${NAME}(?:\\s+as\\s+${NAME})?)*)\\s*,?\\s*\\}`;
/** `import { test, expect as check } from '@playwright/test';` on a line of its own. */
const IMPORT = new RegExp(`^import ${NAMED} from (['"])((?:@playwright/test|playwright))\\2;?[ \\t]*$`, 'gm');
/** What may be meant otherwise in another kind of file; also where it is only in a text. */
const UNSURE = /\b(?:import|export|enum|namespace|declare|module)\b|^\s*@/m;

/** The same lines in the same places, so that errors are told where they are. */
function required(source) {
  let count = 0;
  const text = source.replace(IMPORT, (_line, names, _quote, library) => {
    count += 1;
    return `const { ${names.replace(/\s+as\s+/g, ': ')} } = require('${library}');`;
  });
  return count === 0 ? source : `'use strict'; ${text}`;
}

function compiles(source, filename) {
  try {
    new vm.Script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, { filename });
    return true;
  } catch {
    return false;
  }
}

/** Types blanked out, where nothing else is TypeScript's own. Null: it is not so. */
function withoutTypes(source) {
  try {
    return Module.stripTypeScriptTypes(source);
  } catch {
    return null;
  }
}

/** What Node can run as a CommonJS module in its place. Null: Babel has to read it. */
function plainSource(source, filename) {
  const isTyped = /\.c?ts$/.test(filename);
  if (!isTyped && !/\.c?js$/.test(filename)) return null;
  const text = required(source);
  if (/^#!|\bimport\.meta\b/.test(text) || UNSURE.test(text.replaceAll('module.exports', ''))) return null;
  if (compiles(text, filename)) return text;
  const bare = isTyped ? withoutTypes(text) : null;
  return bare !== null && compiles(bare, filename) ? bare : null;
}

function lazily(load) {
  return new Proxy({}, { get: (_target, name) => load()[name] });
}

/** Playwright's Babel, loaded when it is needed. */
function babelInstead(load) {
  const instead = {
    babelTransform(source, filename, isModule, ...more) {
      const text = isModule ? null : plainSource(source, filename);
      return text === null ? load().babelTransform(source, filename, isModule, ...more) : { code: text };
    },
    types: lazily(() => load().types),
  };
  for (const name of PARTS) {
    Object.defineProperty(instead, name, { enumerable: true, get: () => load()[name] });
  }
  return instead;
}

let isInstalled = false;

function install() {
  if (isInstalled) return;
  isInstalled = true;
  const load = Module._load;
  Module._load = function (id, ...more) {
    if (typeof id !== 'string' || !BABEL.test(id)) return load.call(this, id, ...more);
    return babelInstead(() => load.call(Module, id, ...more));
  };
}

module.exports = { install, plainSource };
