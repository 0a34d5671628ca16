const { expect, test } = require('@playwright/test');

test('logs in', async () => {
  process.env.SERVICE_SECRET_LOGIN = 'made-by-the-' + 'test';
  expect(process.env.SERVICE_SECRET_CONFIG).toBe('made-by-the-configuration');
});
