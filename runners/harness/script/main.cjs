// Runs one setup or teardown script: the job comes on stdin, facts leave on descriptor 3.
// A spare is this very program, started before there is a job: it waits for its stdin.
'use strict';

const fs = require('node:fs');
const vm = require('node:vm');

/** A file of ours, past Node's own loader, which takes half a millisecond for each. */
function part(name) {
  const filename = `${__dirname}/${name}.cjs`;
  const content = fs.readFileSync(filename, 'utf8');
  const module = { exports: {} };
  vm.compileFunction(content, ['require', 'module', '__dirname'], { filename })(require, module, __dirname);
  return module.exports;
}

const channel = part('channel');
const { collectConsole, watchStreams } = part('console');
const { openEnvironment } = part('environment');
const { describe } = part('errors');
const { modulesOf } = part('modules');
const { compileAny, isReadable, origin } = part('translation');
const { exposeRequest, exposeResponse, readRequest, readBody } = part('exchange');

const STDIN = 0;
const end = process.reallyExit.bind(process);

function fail(error, job) {
  channel.tell({ fact: 'failed', ...describe(error, job, origin) });
  end(0);
}

/** All is told, so whoever started us may kill us: that is cheaper than to end. */
function standStill() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function watch(job) {
  process.on('uncaughtException', (error) => fail(error, job));
  process.on('unhandledRejection', (error) => fail(error, job));
  process.on('beforeExit', () => {
    fail(new Error('the script waits for something that cannot come any more'), job);
  });
}

/** The script as a function, its lines where the user has them. */
function compiled(job) {
  const compile = (script) => {
    const source = `(async (require, module, exports) => {\n${script}\n})`;
    return vm.runInThisContext(source, { filename: job.file, lineOffset: -1 });
  };
  return compileAny(compile, job.script, job.file, job.modules);
}

/** What the script left behind. */
function outcome(job, environment, streams) {
  const isSetup = job.phase === 'setup';
  return {
    fact: 'done',
    printed: streams.used,
    env: environment.changed(),
    request: isSetup ? readRequest(globalThis.request) : null,
    body: isSetup ? null : readBody(globalThis.response),
  };
}

function holdSize(said, job) {
  const bytes = Buffer.byteLength(JSON.stringify(said));
  if (bytes > job.limitBytes) {
    const sizes = `${bytes} bytes, more than the ${job.limitBytes} that may pass`;
    throw new RangeError(`what the script hands on has ${sizes}`);
  }
  return said;
}

async function run(job) {
  watch(job);
  const streams = watchStreams();
  collectConsole(channel);
  const environment = openEnvironment(job, channel);
  Object.defineProperty(globalThis, 'REGION', { value: job.region, enumerable: true });
  exposeRequest(job);
  exposeResponse(job);
  const modules = modulesOf(job, compileAny);
  // Whatever ends this process from here on is the script's own doing.
  channel.tell({ fact: 'begun' });
  try {
    const module = { exports: {} };
    await compiled(job)(modules.requireFrom(''), module, module.exports);
    const told = holdSize(outcome(job, environment, streams), job);
    channel.tell(told);
    if (told.printed) end(0);
    else standStill();
  } catch (error) {
    fail(error, job);
  }
}

function start(job) {
  // Before the script has begun, an end is our own fault.
  if (isReadable(job.modules)) run(job);
  else end(1);
}

const text = fs.readFileSync(STDIN, 'utf8');
// Nothing came: a spare whose agent has ended.
if (text === '') end(0);
else start(JSON.parse(text));
