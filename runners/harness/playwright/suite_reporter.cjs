'use strict';
// The reporter of a check suite: it tells tests of several projects and workers apart, and what
// files each of them left; of steps, of which a suite may have very many, those that it hangs in.

const path = require('node:path');
const settings = require('./settings.cjs');
const { whereOf } = require('./error_place.cjs');
const { report } = require('./facts.cjs');
const FactReporter = require('./reporter.cjs');
const { Hangs, tellPreparations } = require('./suite_hangs.cjs');
const { recordByDefault } = require('./suite_defaults.cjs');
const { write } = require('./suite_report.cjs');

const MOST_ERRORS = 5;
const MOST_ATTACHMENTS = 20;

/** Escape sequences that colour a terminal. */
function plain(text) {
  // eslint-disable-next-line no-control-regex
  return String(text).replace(/\u001b\[[0-9;]*m/g, '');
}

function messageOf(error) {
  return plain(error.message ?? error.value ?? 'an error without a message');
}

function placeOf(location) {
  const file = location?.file ? path.relative(settings.root, location.file) : '';
  return { file, line: location?.line ?? 0 };
}

function aboutTest(test) {
  // Root, project, file, and then the titles that the user wrote.
  const [, project, , ...titles] = test.titlePath();
  return { test: test.id, project, title: titles.join(' › '), ...placeOf(test.location) };
}

/** What the preload has put around the functions that write; this is another copy of our modules. */
const writes = process[Symbol.for('picket.part')]('suite_writes.cjs');

class SuiteReporter extends FactReporter {
  #config = null;
  #suite = null;
  #errors = [];
  #hangs = new Hangs();

  /** By Playwright's inner interface: the outer one tells of the configuration only when web server
   * and global setup are through. */
  version() {
    return 'v2';
  }

  onConfigure(config) {
    this.#config = config;
    if (!config.globalSetup) writes.begin();
    tellPreparations(config);
    process.on('SIGINT', () => this.#hangs.tell());
  }

  onBegin(suite) {
    this.#suite = suite;
    recordByDefault(this.#config);
    writes.begin();
    super.onBegin(this.#config, suite);
  }

  onTestBegin(test, result) {
    this.#hangs.testBegan(test, result);
    report({ fact: 'testBegan', ...aboutTest(test), retry: result.retry });
  }

  onStepBegin(test, _result, step) {
    this.#hangs.stepBegan(test, step);
  }

  onStepEnd(test, _result, step) {
    this.#hangs.stepEnded(test, step);
  }

  onTestEnd(test, result) {
    if (result.status === 'timedOut') this.#hangs.timeUp(test);
    this.#hangs.testEnded(test);
    for (const error of result.errors.slice(0, MOST_ERRORS)) {
      report({ fact: 'testError', test: test.id, message: messageOf(error), where: whereOf(error) });
    }
    for (const file of result.attachments.slice(0, MOST_ATTACHMENTS)) {
      if (!file.path) continue;
      const about = { name: file.name, path: file.path, contentType: file.contentType };
      report({ fact: 'attachment', test: test.id, retry: result.retry, ...about });
    }
    report({
      fact: 'testEnded',
      ...aboutTest(test),
      status: result.status,
      outcome: test.outcome(),
      retry: result.retry,
      tookMs: result.duration,
    });
  }

  onError(error) {
    this.#errors.push(error);
    report({ fact: 'suiteError', message: messageOf(error), ...placeOf(error.location) });
  }

  async onEnd(result) {
    await write({ config: this.#config, suite: this.#suite, errors: this.#errors, result });
    super.onEnd(result);
  }
}

module.exports = SuiteReporter;
