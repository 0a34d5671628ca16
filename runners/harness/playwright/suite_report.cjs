'use strict';
// The report of Playwright's own JSON reporter, as `--reporter=json` writes it. Playwright exports no
// reporter: up to 1.58 it has a module for each, later versions make them by their names.

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const settings = require('./settings.cjs');

const OF_ITS_OWN = /^PLAYWRIGHT_JSON_OUTPUT_|^PW_TEST_REPORTER$/;

/** Playwright's folder, as the program that runs finds it. */
function folderOf() {
  const program = fs.realpathSync(process.argv[1]);
  return path.dirname(createRequire(program).resolve('playwright/package.json'));
}

/** Calls without the variables that choose a reporter, or the place of its report. */
async function withoutVariables(call) {
  const kept = Object.entries(process.env).filter(([name]) => OF_ITS_OWN.test(name));
  for (const [name] of kept) delete process.env[name];
  try {
    return await call();
  } finally {
    for (const [name, value] of kept) process.env[name] = value;
  }
}

async function create(config) {
  const folder = folderOf();
  const options = { outputFile: settings.report, configDir: settings.root };
  const module = path.join(folder, 'lib/reporters/json.js');
  if (fs.existsSync(module)) return new (require(module).default)(options);
  const { createReporters } = require(path.join(folder, 'lib/runner/index.js')).runnerReporters;
  const own = Object.getOwnPropertySymbols(config).find((one) => one.description === 'configInternalSymbol');
  const [reporter] = await createReporters(config[own], 'merge', [['json', options]], {});
  return reporter;
}

/** A command may run Playwright several times: the reports become one. */
function joined(before, report) {
  for (const name of ['suites', 'errors']) report[name] = [...before[name], ...report[name]];
  for (const [name, value] of Object.entries(before.stats)) {
    if (typeof value === 'number') report.stats[name] += value;
  }
  report.stats.startTime = before.stats.startTime;
  return report;
}

/** `seen`: what a reporter is told, as configuration, suite, errors and result. */
async function write({ config, suite, errors, result }) {
  if (!settings.report) return;
  try {
    const before = fs.existsSync(settings.report) && JSON.parse(fs.readFileSync(settings.report, 'utf8'));
    const reporter = await withoutVariables(() => create(config));
    reporter.onConfigure?.(config);
    reporter.onBegin(reporter.onConfigure ? suite : config, suite);
    for (const error of errors) reporter.onError(error);
    await reporter.onEnd(result);
    if (!before) return;
    const report = joined(before, JSON.parse(fs.readFileSync(settings.report, 'utf8')));
    fs.writeFileSync(settings.report, JSON.stringify(report, undefined, 2));
  } catch {
    // A Playwright that is built otherwise: the agent then reports what it was told.
    fs.rmSync(settings.report, { force: true });
  }
}

module.exports = { write };
