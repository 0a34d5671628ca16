const { test } = require('@playwright/test');

test('passes', () => {});

test('waits for ever', async () => {
  test.setTimeout(0);
  setInterval(() => {}, 1000);
  await new Promise(() => {});
});
