// Load what checks load, so that Node's compile cache holds it: the test runner and every library.
'use strict';
const { execFileSync } = require('node:child_process');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const SPEC = "require('@playwright/test').test('loads', () => {});\n";

// Beside the libraries, so that the test finds them as a check does.
function loadTestRunner() {
  const folder = mkdtempSync(join(__dirname, 'warm-'));
  writeFileSync(join(folder, 'loads.spec.js'), SPEC);
  const cli = join(__dirname, 'node_modules', '@playwright', 'test', 'cli.js');
  try {
    const args = [cli, 'test', '--reporter=line', '--output=results'];
    execFileSync(process.execPath, args, { cwd: folder });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function loadLibraries() {
  const { dependencies } = JSON.parse(readFileSync(join(__dirname, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) load(name);
}

// A few packages have parts only, as in `@clerk/testing/playwright`, and nothing under their own name.
function load(name) {
  try {
    require(name);
  } catch (problem) {
    if (problem.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw problem;
  }
}

loadTestRunner();
loadLibraries();
