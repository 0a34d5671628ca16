const { test } = require('@playwright/test');
const fs = require('node:fs');
const path = require('node:path');

function leave(make) {
  try {
    make();
  } catch {
    // The run's own folder is not for everybody.
  }
}

/** A folder or a circle of links where a file of ours, or of the run, is expected. */
test('leaves folders and circles', async ({}, about) => {
  const run = path.resolve(__dirname, '..');
  leave(() => fs.mkdirSync(path.join(run, 'test-results.json/deeper'), { recursive: true }));
  leave(() => fs.mkdirSync(path.join(run, 'leaves-leaves-folders-and-circles-trace.zip')));
  fs.symlinkSync('round', path.join(__dirname, 'round'));
  for (const name of ['round', 'test-results', 'nowhere']) {
    about.attachments.push({ name, contentType: 'text/plain', path: path.join(__dirname, name) });
  }
});
