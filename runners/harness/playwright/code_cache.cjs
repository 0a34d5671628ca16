'use strict';
// What V8 compiled of Playwright in an earlier run, of ours, at installation: a seventh of a short
// run is else spent on it. Node's own cache holds what runs as a file is loaded, and no function that
// is called later. What V8 does not accept, of another version, is compiled as usual.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');

/** Node's own wrapper of a CommonJS module; columns of the first line stay what they are. */
const BEFORE = '(function (exports, require, module, __filename, __dirname) { ';
const AFTER = '\n});';
const LINE_END = 10;

function scriptOf(content, filename, cachedData) {
  return new vm.Script(BEFORE + content + AFTER, {
    filename,
    columnOffset: -BEFORE.length,
    cachedData,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
}

function run(script, module, filename) {
  const given = [module.exports, Module.createRequire(filename), module, filename, path.dirname(filename)];
  return Reflect.apply(script.runInThisContext(), module.exports, given);
}

/** `find` makes a script of a file; null: Node is to compile it. */
function compileBy(find) {
  const compile = Module.prototype._compile;
  Module.prototype._compile = function (content, filename, ...more) {
    const script = more[0] === 'module' || content.startsWith('#!') ? null : find(content, filename);
    return script === null ? compile.call(this, content, filename, ...more) : run(script, this, filename);
  };
}

/** The index on the first line, by path: where it begins behind that line, and how long it is. */
function read(file) {
  const bytes = fs.readFileSync(file);
  const end = bytes.indexOf(LINE_END);
  const index = JSON.parse(bytes.toString('utf8', 0, end));
  return (filename) => {
    if (!Object.hasOwn(index, filename)) return null;
    const [begin, length] = index[filename];
    return bytes.subarray(end + 1 + begin, end + 1 + begin + length);
  };
}

function use(file) {
  const cached = read(file);
  compileBy((content, filename) => {
    const data = cached(filename);
    if (data === null) return null;
    const script = scriptOf(content, filename, data);
    return script.cachedDataRejected ? null : script;
  });
}

function write(scripts, file) {
  const index = {};
  const parts = [];
  let begin = 0;
  for (const [filename, script] of scripts) {
    const data = script.createCachedData();
    index[filename] = [begin, data.length];
    parts.push(data);
    begin += data.length;
  }
  fs.writeFileSync(file, Buffer.concat([Buffer.from(`${JSON.stringify(index)}\n`), ...parts]));
}

/** For installations: a run writes what was compiled of all files below a folder as it ends. */
function make(file, folder) {
  const scripts = new Map();
  compileBy((content, filename) => {
    if (!filename.startsWith(folder + path.sep)) return null;
    const script = scriptOf(content, filename);
    scripts.set(filename, script);
    return script;
  });
  process.on('exit', () => write(scripts, file));
}

function install({ PICKET_CODE_CACHE, PICKET_MAKES_CODE_CACHE, PICKET_CODE_FOLDER }) {
  if (PICKET_MAKES_CODE_CACHE) return make(PICKET_MAKES_CODE_CACHE, PICKET_CODE_FOLDER);
  if (!PICKET_CODE_CACHE) return undefined;
  try {
    return use(PICKET_CODE_CACHE);
  } catch {
    return undefined; // it costs time, and nothing else
  }
}

module.exports = { install };
