'use strict';
// Each document of a main frame has one record, and its troubles are counted for it.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { MOST_PAGES, PageBook } = require('../../../runners/harness/playwright/pages.cjs');

function aBook() {
  const told = new Map();
  return { told, book: new PageBook((index, fact) => told.set(index, fact)) };
}

function aPage(url = 'http://shop.test/') {
  return { url: () => url };
}

const measures = (url, origin, metrics = {}) => ({ url, origin, metrics });

test('a document that measures itself keeps its newest measures', () => {
  const { book, told } = aBook();
  const page = aPage();
  book.requested(page, 'http://shop.test/');
  book.measured(page, measures('http://shop.test/', 1, { ttfb: 5 }));
  book.measured(page, measures('http://shop.test/', 1, { lcp: 50 }));
  assert.equal(told.size, 1);
  assert.equal(told.get(0).ttfb, 5);
  assert.equal(told.get(0).lcp, 50);
});

test('a redirect is no document of its own', () => {
  const { book, told } = aBook();
  const page = aPage();
  book.requested(page, 'http://shop.test/away');
  book.requested(page, 'http://shop.test/there');
  book.measured(page, measures('http://shop.test/there', 1));
  assert.deepEqual([...told.values()].map((fact) => fact.url), ['http://shop.test/there']);
});

test('the next document has a record of its own, and the troubles from then on', () => {
  const { book, told } = aBook();
  const page = aPage();
  book.measured(page, measures('http://shop.test/1', 1));
  book.troubled(page, 'consoleErrors');
  book.requested(page, 'http://shop.test/2');
  book.troubled(page, 'networkErrors');
  book.measured(page, measures('http://shop.test/2', 2));
  const counts = [...told.values()].map((fact) => [fact.consoleErrors, fact.networkErrors]);
  assert.deepEqual(counts, [[1, 0], [0, 1]]);
});

test('an address that changes within a document is the same document', () => {
  const { book, told } = aBook();
  const page = aPage();
  book.measured(page, measures('http://shop.test/', 1));
  book.measured(page, measures('http://shop.test/#cart', 1));
  assert.deepEqual([...told.values()].map((fact) => fact.url), ['http://shop.test/#cart']);
});

test('a blank page is none, unless something goes wrong on it', () => {
  const { book, told } = aBook();
  const page = aPage('about:blank');
  book.requested(page, 'about:blank');
  book.measured(page, measures('about:blank', 1));
  assert.equal(told.size, 0);
  book.troubled(page, 'documentErrors');
  assert.equal(told.get(0).documentErrors, 1);
});

test('no more pages are told than a result holds', () => {
  const { book, told } = aBook();
  const page = aPage();
  for (let origin = 0; origin < MOST_PAGES + 5; origin++) {
    book.measured(page, measures(`http://shop.test/${origin}`, origin));
  }
  assert.equal(told.size, MOST_PAGES);
});
