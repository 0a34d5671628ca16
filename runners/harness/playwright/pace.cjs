'use strict';
// The newest fact of each page, told at most every so often: a noisy page must not fill the pipe.

const PAUSE_MS = 50;
const MOST_FACTS = 4000;

class Pace {
  #waiting = new Map();
  #timer = null;
  #told = 0;
  #report;

  constructor(report) {
    this.#report = report;
    process.on('exit', () => this.flush());
  }

  tell(key, fact) {
    this.#waiting.set(key, fact);
    this.#timer ??= setTimeout(() => this.flush(), PAUSE_MS).unref();
  }

  flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    for (const fact of this.#waiting.values()) {
      if (this.#told++ < MOST_FACTS) this.#report(fact);
    }
    this.#waiting.clear();
  }
}

module.exports = { MOST_FACTS, Pace };
