'use strict';
// What V8 compiled of Playwright in an earlier run, of ours, at installation: a seventh of a short
// run is else spent on it. Node's own cache holds what runs as a file is loaded, and no function that
// is called later. What V8 does not accept, of another version, is compiled as usual. V8 looks at a
// version and at lengths only: it crashes on damaged code, and runs that of another text. So the file
// bears a checksum for us, and those of the texts for the agent, which looks at them as it starts.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');

/** Node's own wrapper of a CommonJS module; columns of the first line stay what they are. */
const BEFORE = '(function (exports, require, module, __filename, __dirname) { ';
const AFTER = '\n});';
const LINE_END = 10;
const LIBRARIES = `${path.sep}node_modules${path.sep}`;

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

/** Loaded here, as it takes 2 ms that processes without Playwright need not spend. */
function crc32(bytes) {
  return require('node:zlib').crc32(bytes);
}

function cutAtLine(bytes) {
  const end = bytes.indexOf(LINE_END);
  return [bytes.toString('utf8', 0, end), bytes.subarray(end + 1)];
}

/** A checksum of all that follows; the index, by path: where, how long, the text's checksum; the code. */
function read(file) {
  const [checksum, rest] = cutAtLine(fs.readFileSync(file));
  if (Number(checksum) !== crc32(rest)) throw new Error('It is damaged, or made by another version.');
  const [line, code] = cutAtLine(rest);
  const index = JSON.parse(line);
  return (filename) => {
    if (!Object.hasOwn(index, filename)) return null;
    const [begin, length] = index[filename];
    return code.subarray(begin, begin + length);
  };
}

function readOrNothing(file) {
  try {
    return read(file);
  } catch {
    return () => null; // it costs time, and nothing else
  }
}

/** Read at the first file of a library: not every process of a run loads one. */
function use(file) {
  let cached = null;
  compileBy((content, filename) => {
    if (!filename.includes(LIBRARIES)) return null;
    cached ??= readOrNothing(file);
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
    index[filename] = [begin, data.length, crc32(fs.readFileSync(filename))];
    parts.push(data);
    begin += data.length;
  }
  const rest = Buffer.concat([Buffer.from(`${JSON.stringify(index)}\n`), ...parts]);
  fs.writeFileSync(file, Buffer.concat([Buffer.from(`${crc32(rest)}\n`), rest]));
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
  return PICKET_CODE_CACHE ? use(PICKET_CODE_CACHE) : undefined;
}

module.exports = { install };
