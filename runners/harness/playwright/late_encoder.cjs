'use strict';
// Stands in for the encoder of a video until it is known that one is needed: by far most tests pass,
// and their videos are thrown away. What it was told meanwhile it tells the encoder, then steps aside.

const childProcess = require('node:child_process');
const { EventEmitter } = require('node:events');
const path = require('node:path');
const { PassThrough, Writable } = require('node:stream');
const { setImmediate, setTimeout } = require('node:timers'); // a script may put others in their place
const keeping = require('./keeping.cjs');

const MOST_BYTES = 8 * 1024 * 1024;
/** What is held dies with a script that never yields again, or that the system ends: most pages take less. */
const LONGEST_MS = 2_000;
/** Above Linux's largest: no signal to it reaches anybody. */
const NO_PROCESS = 2 ** 22 + 1;

/** A child process to Playwright; `start` makes the real one, unless `isLeft` once all is told. */
class LateEncoder extends EventEmitter {
  stdout = new PassThrough();
  stderr = new PassThrough();
  stdin = new Writable({
    write: (chunk, _encoding, done) => this.#take(chunk, done),
    final: (done) => this.#end(done),
  });
  #start;
  #process = null;
  #held = [];
  #bytes = 0;
  #timer = setTimeout(() => this.#begin(), LONGEST_MS).unref();

  #isLeft;

  constructor(start, isLeft = keeping.isLeft) {
    super();
    this.#start = start;
    this.#isLeft = isLeft;
  }

  get pid() {
    return this.#process?.pid ?? NO_PROCESS;
  }

  /** Nobody kills what there is not. */
  get killed() {
    return this.#process?.killed ?? true;
  }

  kill(signal) {
    return this.#process?.kill(signal) ?? false;
  }

  #take(chunk, done) {
    if (this.#process) return this.#process.stdin.write(chunk, done);
    // A frame that lasts comes again and again, and takes its place once.
    if (chunk !== this.#held.at(-1)) this.#bytes += chunk.length;
    this.#held.push(chunk);
    if (this.#bytes > MOST_BYTES) this.#begin();
    return done();
  }

  #end(done) {
    if (!this.#process && this.#isLeft()) {
      this.#leave();
      return done();
    }
    this.#begin();
    return this.#process.stdin.end(done);
  }

  #leave() {
    clearTimeout(this.#timer);
    this.#held = [];
    setImmediate(() => {
      for (const event of ['exit', 'close']) this.emit(event, 0, null);
    });
  }

  #begin() {
    if (this.#process) return;
    clearTimeout(this.#timer);
    this.#process = this.#start();
    for (const event of ['error', 'exit', 'close']) {
      this.#process.on(event, (...about) => this.emit(event, ...about));
    }
    this.#process.stdin.on('error', (error) => this.stdin.destroy(error));
    for (const name of ['stdout', 'stderr']) this.#process[name].pipe(this[name]);
    for (const chunk of this.#held) this.#process.stdin.write(chunk);
    this.#held = [];
  }
}

/** Playwright's own videos; one that a script has asked for lies where the script wants it. */
function isVideo(file, args) {
  if (!path.basename(String(file)).startsWith('ffmpeg') || !Array.isArray(args)) return false;
  return path.basename(path.dirname(String(args.at(-1)))).startsWith('.playwright-artifacts-');
}

let isInstalled = false;

function install() {
  if (isInstalled) return;
  isInstalled = true;
  const { spawn } = childProcess;
  childProcess.spawn = function (file, args, ...more) {
    const start = () => spawn.call(this, file, args, ...more);
    return isVideo(file, args) && keeping.mayBeLeft() ? new LateEncoder(start) : start();
  };
}

module.exports = { LateEncoder, install, isVideo };
