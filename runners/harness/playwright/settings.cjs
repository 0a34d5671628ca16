'use strict';
// What the agent wants of this run: one JSON value in the environment, for every process of the run.

const DEFAULTS = {
  root: process.cwd(), // the folder that the user's files are in
  suite: null, // the folder of a suite's code, absolute; null: no suite
  report: null, // where the report of a suite goes, absolute; null: no suite
  script: null, // the user's script, absolute; null: a suite with a configuration of its own
  nameless: false, // the check gives the script no path, whose ending would tell its language
  output: null, // where Playwright and we put files, absolute; null: a suite says so itself
  browser: null, // Chromium's program, absolute; null: this run starts no browser
  browserArguments: [],
  gate: null, // address of a proxy that all traffic has to go through; null: there is none
  proxy: null, // { server } for traffic that asks for none of its own; null: it needs none
  certificatesProxy: null, // the same with a user name, for traffic that shows client certificates of its own
  vitals: null, // web-vitals as one classic script, absolute; null: no page metrics
  artifacts: 'on', // or 'retain-on-failure'
  video: false, // whether there is an encoder
  secretNames: [], // variables of the check that are secret, beside those that are called so
  facts: null, // the names of the facts that are wanted; null: all of them
  updateSnapshots: 'none', // or 'changed', which writes what is missing or differs
  playwrightConfig: {}, // the allowed parts of the user's configuration
};

module.exports = { ...DEFAULTS, ...JSON.parse(process.env.PICKET_HARNESS || '{}') };
