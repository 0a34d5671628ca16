const { test } = require('@playwright/test');

for (const name of ['first', 'second']) {
  test(name, async () => {
    setInterval(() => {}, 1000);
    await new Promise(() => {});
  });
}
