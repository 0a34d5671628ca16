'use strict';
// What Playwright Test is started with.

const { configOf } = require('./configuration.cjs');

const settings = require('./settings.cjs');

if (settings.nameless) require('./nameless.cjs').rewrite(settings.script);
module.exports = configOf(settings);
