'use strict';
// What a suite is doing when the agent stops it: the steps that its tests are in, or what comes
// before its tests.

const path = require('node:path');
const settings = require('./settings.cjs');
const awake = require('./awake.cjs');
const { report } = require('./facts.cjs');
const { place } = require('./steps.cjs');

const ASSIGNMENTS = /^\s*(?:[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|\\.|[^\s"'\\`(])*\s+)*/;
const MOST_NAME_CHARS = 100;

function named(step, prefix) {
  if (!step) return {};
  const title = step.subtitle ? `${step.title} ${step.subtitle}` : step.title;
  return { [prefix]: title, [`${prefix}Where`]: place(step.location) };
}

/** The hook, fixture or step of the user's that a step stands in. */
function around(step) {
  for (let one = step?.parent; one; one = one.parent) {
    if (['hook', 'fixture', 'test.step'].includes(one.category) && place(one.location)) return one;
  }
  return null;
}

class Hangs {
  #tests = new Map(); // a test's id -> its worker, its open steps, the one that ended last

  testBegan(test, result) {
    this.#tests.set(test.id, { worker: result.workerIndex, open: new Set(), last: null });
  }

  testEnded(test) {
    this.#tests.delete(test.id);
  }

  stepBegan(test, step) {
    this.#tests.get(test.id)?.open.add(step);
  }

  stepEnded(test, step) {
    const seen = this.#tests.get(test.id);
    seen?.open.delete(step);
    if (seen && place(step.location)) seen.last = step;
  }

  /** The run is to end. */
  tell() {
    awake.tell();
    for (const test of this.#tests.keys()) this.#tellOf(test);
  }

  /** A test's own time is up. */
  timeUp(test) {
    if (this.#tests.has(test.id)) this.#tellOf(test.id);
  }

  #tellOf(test) {
    const { worker, open, last } = this.#tests.get(test);
    const theirs = [...open].filter((step) => place(step.location));
    const step = (theirs.length ? theirs : [...open]).at(-1);
    const inside = around(step)?.title ?? null;
    report({ fact: 'hung', test, worker, inside, ...named(step, 'step'), ...named(last, 'last') });
  }
}

function serversOf(config) {
  const symbols = Object.getOwnPropertySymbols(config);
  const own = config[symbols.find((one) => one.description === 'configInternalSymbol')];
  return own?.webServers ?? [config.webServer].filter(Boolean);
}

/** The program of a command. Arguments and variables may be secrets, and are nobody's to read. */
function programOf(command) {
  const [word] = String(command ?? '').replace(ASSIGNMENTS, '').split(/\s/, 1);
  const isName = /^[\w./@-]+$/.test(word) && word.length <= MOST_NAME_CHARS;
  return isName ? path.basename(word) : 'a command';
}

function hostOf({ url, port }) {
  try {
    return url ? new URL(url).host : port ? `port ${port}` : null;
  } catch {
    return null;
  }
}

/** A web server as its owner knows it: never cut, for half a secret is not recognised as one. */
function serverName(server) {
  const host = hostOf(server);
  const isShort = host && host.length <= MOST_NAME_CHARS;
  return isShort ? `${programOf(server.command)} at ${host}` : programOf(server.command);
}

/** What comes before the tests, and may take for ever. */
function tellPreparations(config) {
  const servers = serversOf(config).map(serverName);
  const { globalSetup, globalTeardown } = config;
  const [setup, teardown] = [globalSetup, globalTeardown].map(nameOf);
  report({ fact: 'prepares', servers: servers.slice(0, 5), setup, teardown });
  process.once('SIGINT', () => {
    tellIfLoaded('inSetup', globalSetup);
    tellIfLoaded('inTeardown', globalTeardown);
  });
}

const nameOf = (file) => (file ? path.relative(settings.root, file) : null);

function tellIfLoaded(fact, file) {
  if (file && require.cache[file]) report({ fact });
}

module.exports = { Hangs, serverName, tellPreparations };
