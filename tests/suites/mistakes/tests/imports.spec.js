const { test } = require('@playwright/test');
const pad = require('no-such-package');

test('imports', () => pad());
