'use strict';
// Keeps Babel out of runs whose files Node reads as they are: to load and run it costs a tenth of a
// short run. Whatever is not surely read alike goes the usual way.

const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');
const { mayHoldTypeArguments, withoutTypes } = require('../script/types.cjs');

const OURS = __dirname + path.sep;
const BABEL = /[/\\]transform[/\\]babelBundle$/;
const PARTS = ['babelParse', 'codeFrameColumns', 'declare', 'traverse'];
const NAME = '[A-Za-z_$][\\w$]*';
const NAMED = `\\{\\s*(${NAME}(?:\\s+as\\s+${NAME})?(?:\\s*,\\s*${NAME}(?:\\s+as\\s+${NAME})?)*)\\s*,?\\s*\\}`;
/** `import { test, expect as check } from '@playwright/test';` on a line of its own. */
const LINE = `import ${NAMED} from (['"])((?:@playwright/test|playwright))\\2;?[ \\t]*`;
const IMPORT = new RegExp(`^${LINE}$`, 'gm');
/** Blank lines, comments and such imports, with which a file begins; further down an import is not
 * yet there for what stands above, or it is only in a text. */
const COMMENT = '/\\*(?:[^*]|\\*(?!/))*\\*/';
const HEAD = new RegExp(`^(?:${LINE}\\r?\\n|[ \\t]*(?://.*)?\\r?\\n|[ \\t]*${COMMENT}[ \\t]*\\r?\\n)*`);
/** First lines that may move to the right: errors come from none of them. */
const FIRST = new RegExp(`^(?:\\s*(?://.*|/\\*[^/]*/?\\s*)?|${LINE}|const \\{[\\w$\\s,:]*\\} = require\\((['"])[^'"]*\\4\\);?\\s*)$`);
const STRICT = /^\s*(['"])use strict\1;?\s*$/;
/** What may be meant otherwise in another kind of file, or what Babel changes: `this` outside of
 * functions, properties of classes; also where it is only in a text. */
const UNSURE =
  /\b(?:import|export|enum|namespace|declare|module|this|class|arguments)\b|\busing\s+[\w$]+\s*[=:,]|^\s*@|<!--|-->/m;

/** The same lines in the same places, so that errors are told where they are. Null: the first one
 * would have to move. */
function required(source) {
  const head = HEAD.exec(source)[0];
  const begun = head.replace(IMPORT, (_line, names, _quote, library) => {
    return `const { ${names.replace(/\s+as\s+/g, ': ')} } = require('${library}');`;
  });
  const text = begun + source.slice(head.length);
  const first = source.split('\n', 1)[0];
  if (STRICT.test(first)) return text;
  return FIRST.test(first) ? `'use strict'; ${text}` : null;
}

function compilesIn(before, source, after, filename) {
  try {
    new vm.Script(`${before}${source}\n${after}`, { filename });
    return true;
  } catch {
    return false;
  }
}

/** As a CommonJS module, and also where a `return`, or one name declared twice, is as wrong as in an
 * ES module, which Babel takes each file for. */
function compiles(source, filename) {
  return (
    compilesIn('(function (exports, require, module, __filename, __dirname) {', source, '})', filename) &&
    compilesIn('(class { static {{', source, '}}})', filename)
  );
}

/** What Node can run as a CommonJS module in its place. Null: Babel has to read it. */
function plainSource(source, filename) {
  const isTyped = /\.c?ts$/.test(filename);
  if (!isTyped && !/\.c?js$/.test(filename)) return null;
  const text = required(source);
  if (text === null || /^#!/.test(text) || UNSURE.test(text.replaceAll('module.exports', ''))) return null;
  const isPlain = compiles(text, filename);
  if (isPlain && !(isTyped && mayHoldTypeArguments(text))) return text;
  const bare = isTyped ? withoutTypes(text) : null;
  return bare !== null && compiles(bare, filename) ? bare : null;
}

/** Our own files are written for Node. */
function readable(source, filename) {
  return filename.startsWith(OURS) ? source : plainSource(source, filename);
}

function lazily(load) {
  return new Proxy({}, { get: (_target, name) => load()[name] });
}

/** Playwright's Babel, loaded when it is needed. */
function babelInstead(load) {
  const instead = {
    babelTransform(source, filename, isModule, ...more) {
      const hasPlugins = more.some((one) => Array.isArray(one) && one.length > 0);
      const text = isModule || hasPlugins ? null : readable(source, filename);
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

module.exports = { install, plainSource, readable };
