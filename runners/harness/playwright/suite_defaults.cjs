'use strict';
// What is recorded of a suite whose configuration does not say: no argument of the command line can
// set it, and each worker reads the configuration anew, with what the runner hands it as overrides.

const settings = require('./settings.cjs');
const { report } = require('./facts.cjs');

/** Playwright knows no "on-first-retry" for screenshots; this is what comes nearest. */
const DEFAULTS = { video: 'on-first-retry', screenshot: 'only-on-failure' };

/** The runner's own overrides, as its arguments made them; null where it keeps them elsewhere. */
function overridesOf(config) {
  const symbols = Object.getOwnPropertySymbols(config);
  const own = symbols.find((one) => one.description === 'configInternalSymbol');
  return config[own]?.configCLIOverrides ?? null;
}

/** To be called before the first worker starts. */
function recordByDefault(config) {
  const overrides = overridesOf(config);
  if (!overrides) return;
  const set = [];
  for (const [name, mode] of Object.entries(DEFAULTS)) {
    const isOpen = config.projects.every((project) => project.use?.[name] === undefined);
    // Without an encoder every test that records a video fails.
    const isPossible = name !== 'video' || settings.video;
    if (!isOpen || !isPossible) continue;
    overrides.use = { ...overrides.use, [name]: mode };
    set.push(`${name}: '${mode}'`);
  }
  if (set.length) report({ fact: 'defaults', set });
}

module.exports = { recordByDefault };
