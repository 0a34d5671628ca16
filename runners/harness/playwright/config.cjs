'use strict';
// What Playwright Test is started with.

const { configOf } = require('./configuration.cjs');

module.exports = configOf(require('./settings.cjs'));
