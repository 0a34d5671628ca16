'use strict';
// Takes hold of Playwright wherever it is loaded: browsers, contexts and requests pass by here.

const childProcess = require('node:child_process');
const Module = require('node:module');
const awake = require('./awake.cjs');
const browsers = require('./browsers.cjs');
const { tellLevels } = require('./console_levels.cjs');
const { pipeNumber, report } = require('./facts.cjs');
const features = require('./features.cjs');
const lateAnswers = require('./late_answers.cjs');
const lateEncoder = require('./late_encoder.cjs');
const plainSource = require('./plain_source.cjs');
const requests = require('./requests.cjs');
const secrets = require('./secrets.cjs');
const settings = require('./settings.cjs');
const typing = require('./typing.cjs');

const seen = new WeakSet();

function isPlaywright(loaded) {
  if (!loaded || typeof loaded !== 'object' || seen.has(loaded)) return false;
  return typeof loaded.chromium?.launch === 'function';
}

function takeHold(loaded) {
  try {
    if (!isPlaywright(loaded)) return;
    seen.add(loaded);
    for (const name of ['chromium', 'firefox', 'webkit']) browsers.wrapType(loaded[name]);
    typing.watch(loaded);
    if (settings.script) lateAnswers.watch(loaded);
    requests.wrapFactory(loaded.request);
    browsers.watchCalls(loaded);
  } catch {
    // A Playwright that is built otherwise runs without our facts; the check itself must not fail.
  }
}

const KILL = 9;
// What a shell says of a program that SIGKILL ended.
const KILLED = 137;

function watchLoading() {
  const load = Module._load;
  Module._load = function (id, ...more) {
    const loaded = load.call(this, id, ...more);
    if (typeof id === 'string' && id.includes('playwright')) takeHold(loaded);
    return loaded;
  };
}

/** Playwright's workers use descriptor 3 for themselves: they get our pipe as their last one. */
function passPipeOn() {
  const fork = childProcess.fork;
  childProcess.fork = function (file, ...more) {
    const options = more.find((one) => one && typeof one === 'object' && !Array.isArray(one));
    const pipe = pipeNumber();
    if (pipe && Array.isArray(options?.stdio)) {
      const environment = { ...(options.env ?? process.env) };
      environment.PICKET_FACTS_FD = String(options.stdio.length);
      options.env = environment;
      options.stdio = [...options.stdio, pipe];
    }
    return fork.call(this, file, ...more);
  };
}

/** The first process of a run tells its end: without it, whatever is missing is not the script's. */
function tellExit() {
  if (process.env.PICKET_FACTS_FD === '3' && !process.env.PICKET_STARTED) {
    process.env.PICKET_STARTED = '1';
    process.on('exit', (code) => report({ fact: 'exited', code }));
  }
}

/** A script that kills its run tells so first: any other SIGKILL comes from outside. */
function tellKill() {
  const { kill } = process;
  const runner = process.env.PICKET_FACTS_FD === '3' ? process.pid : process.ppid;
  process.kill = function (pid, signal) {
    const isKill = signal === 'SIGKILL' || signal === KILL;
    if (isKill && Math.abs(pid) === runner) report({ fact: 'exited', code: KILLED });
    return kill.call(this, pid, signal);
  };
}

function install() {
  tellExit();
  tellKill();
  awake.install();
  secrets.install();
  if (settings.script) tellLevels();
  watchLoading();
  passPipeOn();
  features.install();
  if (!settings.script) return;
  plainSource.install();
  lateEncoder.install();
}

module.exports = { install };
