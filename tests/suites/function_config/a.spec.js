const { test } = require('@playwright/test');

test('is never reached', () => {});
