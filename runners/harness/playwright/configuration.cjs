'use strict';
// Makes the configuration of a BROWSER or MULTI_STEP run: ours, with the allowed parts of the user's.

const path = require('node:path');

const SCREENSHOTS = { on: 'on', 'retain-on-failure': 'only-on-failure' };

function exactly(file) {
  return new RegExp(`^${file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`);
}

function configOf({ root, script, output, artifacts, video, updateSnapshots, playwrightConfig }) {
  const { timeout = 30_000, use = {}, expect = {} } = playwrightConfig;
  return {
    testDir: root,
    testMatch: exactly(script),
    respectGitIgnore: false,
    outputDir: output,
    workers: 1,
    retries: 0, // the service retries, in another run
    reporter: [[path.join(__dirname, 'reporter.cjs'), { alone: true }]],
    updateSnapshots, // a picture that was written a moment ago proves nothing
    timeout,
    globalTimeout: 0, // the agent stops the run, and knows what it was doing then
    expect,
    use: {
      navigationTimeout: 30_000,
      ...use,
      trace: artifacts,
      screenshot: SCREENSHOTS[artifacts],
      video: video ? artifacts : 'off',
    },
  };
}

module.exports = { configOf };
