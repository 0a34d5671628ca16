const { test } = require('@playwright/test');

test('eats', async () => {
  test.setTimeout(0);
  const eaten = [];
  for (;;) {
    eaten.push(Buffer.alloc(16 * 1024 * 1024, 1));
    await new Promise((done) => setTimeout(done, 50));
  }
});
