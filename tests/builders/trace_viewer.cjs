'use strict';
// Opens a trace in Playwright's viewer and prints what that shows.

const [core, executablePath, url, what, server] = process.argv.slice(2);
const { chromium } = require(core);
const SNAPSHOT = /\/snapshot\//;

async function fieldsOf(page) {
  await page.locator('.action-title').filter({ hasText: /insert/i }).last().click();
  await page.getByRole('tab', { name: 'After' }).click();
  for (;;) {
    for (const frame of page.frames().filter((one) => SNAPSHOT.test(one.url()))) {
      const fields = frame.locator('input');
      // A frame that is being exchanged for that of another moment has none.
      const values = await fields.evaluateAll((all) => all.map((one) => one.value)).catch(() => []);
      if (values.length) return values;
    }
    await page.waitForTimeout(100);
  }
}

async function look(browser) {
  const page = await browser.newPage();
  const problems = [];
  page.on('pageerror', (problem) => problems.push(String(problem)));
  await page.goto(url);
  await page.locator('.action-title').first().waitFor();
  const actions = await page.locator('.action-title').allInnerTexts();
  if (what === 'actions') {
    await page.locator('.snapshot-visible').first().waitFor();
    return { actions, requests: [], fields: [], problems };
  }
  const fields = await fieldsOf(page);
  await page.getByRole('tab', { name: /Network/ }).click();
  await page.locator('.grid-view-cell').first().waitFor();
  const requests = await page.locator('.grid-view-cell').allInnerTexts();
  return { actions, requests, fields, problems };
}

(async () => {
  const browser = await chromium.launch({ executablePath, proxy: server && { server } });
  try {
    process.stdout.write(JSON.stringify(await look(browser)));
  } finally {
    await browser.close();
  }
})();
