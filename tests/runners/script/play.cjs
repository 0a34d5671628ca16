// Starts the real program with one job, as the runner does, and collects its facts.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const MAIN = path.join(__dirname, '../../../runners/harness/script/main.cjs');

/** A folder of libraries with one in it. */
function libraries() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'libraries-'));
  const shelf = path.join(folder, 'node_modules', 'greeter');
  fs.mkdirSync(shelf, { recursive: true });
  fs.writeFileSync(path.join(shelf, 'index.js'), "exports.greet = (name) => `hello ${name}`;");
  return path.join(folder, 'node_modules');
}

function aJob(script, changes = {}) {
  return {
    file: 'setup.js',
    phase: 'setup',
    script,
    env: {},
    secretNames: [],
    region: 'cellar',
    request: {
      method: 'GET',
      url: 'http://shop.test/',
      body: '',
      headers: {},
      queryParameters: {},
    },
    response: null,
    snippets: {},
    modules: '/nowhere/node_modules',
    limitBytes: 262144,
    ...changes,
  };
}

/** Exit code, facts and outputs of one run. */
function play(job) {
  const readable = [path.dirname(MAIN), path.dirname(job.modules)];
  const flags = ['--permission', ...readable.map((folder) => `--allow-fs-read=${folder}/*`)];
  const options = { stdio: ['pipe', 'pipe', 'pipe', 'pipe'], env: { PATH: process.env.PATH } };
  const child = spawn(process.execPath, [...flags, MAIN], options);
  const texts = ['', '', ''];
  [child.stdout, child.stderr, child.stdio[3]].forEach((stream, i) => {
    stream.setEncoding('utf8').on('data', (text) => {
      texts[i] += text;
      if (texts[2].includes('"fact":"done","printed":false')) child.kill('SIGKILL');
    });
  });
  child.stdin.end(JSON.stringify(job));
  return new Promise((resolve) => {
    child.on('close', (code) => resolve(told(code, texts)));
  });
}

function told(code, [stdout, stderr, lines]) {
  const facts = lines.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const of = (name) => facts.filter((one) => one.fact === name);
  return {
    code,
    stdout,
    stderr,
    facts,
    done: of('done')[0],
    failed: of('failed')[0],
    logs: of('log').map(({ level, message }) => [level, message]),
    secrets: of('secret').map((one) => one.value),
  };
}

module.exports = { aJob, libraries, play };
