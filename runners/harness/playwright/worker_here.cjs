'use strict';
// Playwright's worker within the test runner's own process: its bundles, the better half of what a
// run costs, are loaded once instead of twice. One run has one worker at a time; only the first is
// here. After a failure Playwright takes a fresh one, and that is a process of its own.

const childProcess = require('node:child_process');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const awake = require('./awake.cjs');
const { clearInterval, setImmediate, setInterval } = require('node:timers'); // a script may put another in the global one's place

const WATCHED = ['message', 'disconnect', 'uncaughtException', 'unhandledRejection'];
const SIGNALS = ['SIGINT', 'SIGTERM'];
const LONG_MS = 2 ** 30;
const ENDED = 'The script ended its own process.';

const FROM_RUNNER = /[/\\]playwright[/\\]lib[/\\]runner[/\\]/;

const { parse, stringify } = JSON; // a script may put others in their place
const copy = (message) => parse(stringify(message)); // as a pipe between processes does

/** What the script left running can throw still; its worker would be gone by now. */
function onFault(error) {
  if (FROM_RUNNER.test(error?.stack)) throw error;
}

/** A child process to the test runner; in truth it is here. */
class WorkerHere extends EventEmitter {
  stdout = null;
  stderr = null;
  #hears = [];
  #isToStop = false;
  #isOver = false;
  #kept = new Map();
  #own = {};
  // A script that waits for nothing hangs, as it does in a process of its own; Node would end here.
  #alive = setInterval(() => {}, LONG_MS);

  constructor(entry, environment) {
    super();
    this.#keep();
    Object.assign(process.env, environment);
    setImmediate(() => this.#load(entry));
  }

  /** From the runner: it comes later, as from another process. */
  send(message) {
    if (message.method === '__stop__') this.#isToStop = true;
    const told = copy(message);
    setImmediate(() => {
      if (!this.#isOver) for (const hear of this.#hears) hear(told);
    });
    return true;
  }

  kill() {
    this.#end(null, 'SIGKILL');
    return true;
  }

  /** What a worker changes in its process, as it was before. */
  #keep() {
    for (const event of [...WATCHED, ...SIGNALS]) this.#kept.set(event, process.listeners(event));
    const { exit, abort, kill, send } = process;
    this.#own = {
      process: { exit, abort, kill, send },
      environment: { ...process.env },
      folder: process.cwd(),
      stdout: process.stdout.write,
      stderr: process.stderr.write,
    };
  }

  #load(entry) {
    // To the runner it comes at once: a step that blocks everything behind it has been told by then.
    process.send = (message) => {
      if (!this.#isOver) this.emit('message', copy(message));
      return true;
    };
    process.exit = (code) => this.#leave(Number(code ?? process.exitCode ?? 0), null);
    process.abort = () => this.#leave(null, 'SIGABRT');
    process.kill = (pid, signal) => this.#signal(pid, signal);
    require(entry);
    this.#hears = this.#added('message');
    for (const event of ['message', 'disconnect', ...SIGNALS]) this.#forget(event);
    process.on('SIGTERM', () => this.#die('SIGTERM'));
    process.on('SIGINT', awake.tell);
  }

  #added(event) {
    return process.listeners(event).filter((one) => !this.#kept.get(event).includes(one));
  }

  #forget(event) {
    for (const one of this.#added(event)) process.removeListener(event, one);
  }

  /** The agent wants the run to end, and browsers that are started here would hold it up. */
  #die(signal) {
    process.removeAllListeners(signal);
    this.#own.process.kill.call(process, process.pid, signal);
  }

  #signal(pid, signal) {
    const isDeath = pid === process.pid && signal !== 0;
    if (isDeath && process.listenerCount(String(signal)) === 0) {
      return this.#leave(null, signal ?? 'SIGTERM');
    }
    return this.#own.process.kill.call(process, pid, signal);
  }

  /** The worker ends, or the script ends it: then nothing behind the call may run. */
  #leave(code, signal) {
    const wasAsked = this.#isToStop;
    this.#end(code, signal);
    if (!wasAsked) throw new Error(ENDED);
  }

  #end(code, signal) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#restore();
    setImmediate(() => this.emit('exit', code, signal));
  }

  #restore() {
    clearInterval(this.#alive);
    Object.assign(process, this.#own.process);
    process.stdout.write = this.#own.stdout;
    process.stderr.write = this.#own.stderr;
    for (const event of WATCHED) this.#forget(event);
    process.removeListener('SIGINT', awake.tell);
    for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, onFault);
    process.chdir(this.#own.folder);
    for (const name of Object.keys(process.env)) {
      if (!(name in this.#own.environment)) delete process.env[name];
    }
    Object.assign(process.env, this.#own.environment);
  }
}

/** The first worker of this process is made here. */
function install() {
  const { fork } = childProcess;
  childProcess.fork = function (file, ...more) {
    const options = more.find((one) => one && typeof one === 'object' && !Array.isArray(one));
    if (!awake.isWorker(file) || !fs.existsSync(file)) return fork.call(this, file, ...more);
    childProcess.fork = fork;
    return new WorkerHere(file, options?.env ?? {});
  };
}

module.exports = { WorkerHere, install };
