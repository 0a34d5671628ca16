// What a script may require: Node's harmless parts, the runtime's libraries, its snippets.
'use strict';

const { createRequire, isBuiltin } = require('node:module');
const path = require('node:path');
const vm = require('node:vm');

const BUILTINS = new Set([
  'assert',
  'assert/strict',
  'buffer',
  'crypto',
  'dns',
  'dns/promises',
  'events',
  'http',
  'https',
  'net',
  'path',
  'path/posix',
  'perf_hooks',
  'punycode',
  'querystring',
  'readline',
  'stream',
  'stream/promises',
  'string_decoder',
  'timers',
  'timers/promises',
  'tls',
  'url',
  'util',
  'zlib',
]);
const BROWSERS = /^(?:@playwright\/|playwright(?:-core)?(?:\/|$))/;
const ENDINGS = ['', '.js', '.json', '/index.js'];

function refusal(id) {
  if (BROWSERS.test(id)) {
    return `${id} is not there for setup and teardown scripts; use a multi-step or browser check`;
  }
  return `${id} is not there for setup and teardown scripts`;
}

function missing(id, because) {
  return Object.assign(new Error(because), { code: 'MODULE_NOT_FOUND', id });
}

/** What `import()` gives of a module; those of translated files say themselves what they export. */
function namespace(exported) {
  const isObject = exported !== null && ['object', 'function'].includes(typeof exported);
  return Object.freeze({ default: exported, ...(isObject ? exported : {}) });
}

class Modules {
  constructor(job, compileAny) {
    this.folder = job.modules;
    this.compileAny = compileAny;
    this.snippets = new Map(Object.entries(job.snippets));
    this.loaded = new Map();
    this.library = createRequire(path.join(job.modules, 'noop.js'));
  }

  requireFrom(folder) {
    const require = (id) => this.require(String(id), folder);
    require.later = async (id) => namespace(require(id));
    return require;
  }

  require(id, folder) {
    if (isBuiltin(id)) return this.builtin(id);
    if (id.startsWith('./') || id.startsWith('../')) return this.snippet(id, folder);
    if (path.isAbsolute(id) || BROWSERS.test(id)) throw missing(id, refusal(id));
    return this.fromLibraries(id);
  }

  builtin(id) {
    if (!BUILTINS.has(id.replace(/^node:/, ''))) throw missing(id, refusal(id));
    return require(id);
  }

  fromLibraries(id) {
    try {
      return this.library(id);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND' || error.requireStack?.length > 1) throw error;
      throw missing(id, `${id} is not a library of this runtime`);
    }
  }

  snippet(id, folder) {
    const wanted = path.posix.join(folder, id);
    const ending = ENDINGS.find((one) => this.snippets.has(wanted + one));
    if (ending === undefined) throw missing(id, `there is no file ${wanted} beside the script`);
    return this.load(wanted + ending);
  }

  load(file) {
    const known = this.loaded.get(file);
    if (known) return known.exports;
    const module = { exports: {} };
    this.loaded.set(file, module);
    const content = this.snippets.get(file);
    if (file.endsWith('.json')) module.exports = JSON.parse(content);
    else this.evaluate(file, content, module);
    return module.exports;
  }

  evaluate(file, content, module) {
    const names = ['require', 'module', 'exports'];
    const compile = (text) => vm.compileFunction(text, names, { filename: file });
    const body = this.compileAny(compile, content, file, this.folder);
    body.call(module.exports, this.requireFrom(path.posix.dirname(file)), module, module.exports);
  }
}

function modulesOf(job, compileAny) {
  return new Modules(job, compileAny);
}

module.exports = { modulesOf };
