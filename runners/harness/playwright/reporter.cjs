'use strict';
// Playwright Test's reporter of a run: what happens goes to the agent, which judges it.

const fs = require('node:fs');
const path = require('node:path');
const settings = require('./settings.cjs');
const { whereOf } = require('./error_place.cjs');
const { report } = require('./facts.cjs');
const { mayShare, textsIn } = require('./sharing.cjs');
const steps = require('./steps.cjs');

const MOST_ERRORS = 20;

/** Whether a step is an `expect.soft`: it fails the test, but does not end it. */
function isSoft(step) {
  if (step.category !== 'expect') return false;
  return /\bsoft\b/.test(step.title) || /\bsoft\b/.test(lineOf(step.location));
}

/** The line of the user's file; with a message of its own, a step's title does not tell. */
function lineOf(location) {
  try {
    return fs.readFileSync(location.file, 'utf8').split('\n')[location.line - 1] ?? '';
  } catch {
    return '';
  }
}

/** Whether `only` chose this test, or a group around it. */
function isFocused(test) {
  for (let item = test; item; item = item.parent) if (item._only) return true;
  return false;
}

/** The folder of a test's files within the output folder; null: it left none. */
function folderOf(result) {
  const paths = result.attachments.filter((one) => one.path);
  const inside = paths.map((one) => path.relative(settings.output, one.path).split(path.sep));
  return inside.find((parts) => parts.length > 1 && parts[0] !== '..')?.[0] ?? null;
}

class FactReporter {
  #softMessages = new Set();
  // A worker in this process puts its own in their place.
  #out = process.stdout.write.bind(process.stdout);
  #err = process.stderr.write.bind(process.stderr);

  constructor(options) {
    this.isAlone = Boolean(options?.alone);
  }

  /** Nobody else prints beside us; next to reporters of the user's we print nothing. */
  printsToStdio() {
    return this.isAlone;
  }

  onBegin(config, suite) {
    const tests = suite.allTests();
    const focused = tests.some(isFocused);
    report({ fact: 'began', playwright: config.version, tests: tests.length, focused });
    if (!settings.script || !mayShare(textsIn(settings.root), tests)) return;
    process[Symbol.for('picket.part')]('worker_here.cjs').install();
  }

  onStdOut(chunk) {
    if (this.isAlone) this.#out(chunk);
  }

  onStdErr(chunk) {
    if (this.isAlone) this.#err(chunk);
  }

  onTestBegin(test, result) {
    report({ fact: 'testBegan', title: this.#title(test), retry: result.retry });
  }

  onStepBegin(_test, _result, step) {
    const title = step.subtitle ? `${step.title} ${step.subtitle}` : step.title;
    steps.began(step, title, step.category, step.location);
  }

  onStepEnd(_test, _result, step) {
    if (step.error && isSoft(step)) this.#softMessages.add(step.error.message);
    steps.ended(step, step.error?.message);
  }

  onTestEnd(test, result) {
    for (const error of result.errors.slice(0, MOST_ERRORS)) this.#tell(error, test);
    report({
      fact: 'testEnded',
      title: this.#title(test),
      status: result.status,
      outcome: test.outcome(),
      retry: result.retry,
      tookMs: result.duration,
      errors: result.errors.length,
      folder: folderOf(result),
    });
  }

  /** An error outside of every test: a file that does not load, a hook of the configuration. */
  onError(error) {
    this.#tell(error);
  }

  onEnd(result) {
    report({ fact: 'ended', status: result.status });
  }

  #tell(error, test) {
    const message = String(error.message ?? error.value ?? 'an error without a message');
    const soft = this.#softMessages.has(error.message);
    const title = test ? this.#title(test) : null;
    const frame = error.snippet ?? null;
    report({ fact: 'error', message, where: whereOf(error), soft, test: title, frame });
  }

  #title(test) {
    return test.titlePath().filter(Boolean).slice(1).join(' › ');
  }
}

module.exports = FactReporter;
