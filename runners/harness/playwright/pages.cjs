'use strict';
// The book of a run's pages: one record for each document of a main frame, in the order of the run.

const MOST_PAGES = 200;
const isBlank = (url) => !url || url.startsWith('about:');

class PageBook {
  #current = new WeakMap(); // a page of Playwright's -> the record of its document
  #next = 0;
  #report;

  constructor(report) {
    this.#report = report;
  }

  /** A main frame asks for a document: its troubles count for it from now on. */
  requested(page, url) {
    const record = this.#current.get(page);
    // A redirect or a second try before anything was shown is still the same document.
    if (record && record.origin === null) this.#rename(record, url);
    else this.#open(page, url);
  }

  /** A document says which one it is, and what was measured so far. */
  measured(page, seen) {
    if (isBlank(seen.url)) return;
    let record = this.#current.get(page);
    if (!record || (record.origin !== null && record.origin !== seen.origin)) {
      record = this.#open(page, seen.url);
    }
    record.origin = seen.origin;
    record.url = seen.url;
    Object.assign(record.metrics, seen.metrics);
    this.#tell(record);
  }

  /** Something went wrong on a page: `consoleErrors`, `networkErrors` or `documentErrors`. */
  troubled(page, kind) {
    const record = this.#current.get(page) ?? this.#open(page, page.url());
    record[kind] += 1;
    this.#tell(record);
  }

  #open(page, url) {
    const counts = { consoleErrors: 0, networkErrors: 0, documentErrors: 0 };
    // `origin`: the document's own time zero; null until it has told us.
    const record = { index: null, url, origin: null, metrics: {}, ...counts };
    this.#current.set(page, record);
    this.#tell(record);
    return record;
  }

  #rename(record, url) {
    record.url = url;
    this.#tell(record);
  }

  #tell(record) {
    if (isBlank(record.url) && !record.consoleErrors && !record.documentErrors) return;
    record.index ??= this.#next++;
    if (record.index >= MOST_PAGES) return;
    const { index, url, metrics, consoleErrors, networkErrors, documentErrors } = record;
    const fact = { fact: 'page', index, url, consoleErrors, networkErrors, documentErrors };
    this.#report(index, { ...fact, ...metrics });
  }
}

module.exports = { MOST_PAGES, PageBook };
