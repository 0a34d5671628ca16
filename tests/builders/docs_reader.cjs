'use strict';
// Reads the API's page in Chromium as a person would, and prints what was seen.

const [core, executablePath, url, key] = process.argv.slice(2);
const { chromium } = require(core);

const DEADLINE_MS = 150_000;

async function search(page, words) {
  await page.getByRole('button', { name: /search/i }).first().click();
  await page.getByRole('combobox', { name: 'Enter search query' }).fill(words);
  await page.getByRole('option', { name: new RegExp(words, 'i') }).first().waitFor();
  const found = await page.getByRole('option').allInnerTexts();
  await page.keyboard.press('Escape');
  return found;
}

async function send(page) {
  await page.getByPlaceholder('Token').first().fill(key);
  await page.getByRole('link', { name: /^List checks/ }).click();
  await page.getByRole('button', { name: 'Test Request (get /v1/checks)' }).click();
  const client = page.getByRole('dialog', { name: 'API Client' });
  await client.getByRole('button', { name: /^Send get request/ }).click();
  const response = client.getByRole('region', { name: 'Response', exact: true });
  return response.getByRole('link', { name: /^\d{3} / }).innerText();
}

async function read(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  const problems = [];
  const foreign = [];
  page.on('pageerror', (problem) => problems.push(String(problem)));
  page.on('console', (line) => {
    if (['error', 'warning'].includes(line.type())) problems.push(line.text());
  });
  await page.route(
    (asked) => asked.origin !== url && asked.protocol !== 'data:',
    (route) => {
      foreign.push(route.request().url());
      return route.abort();
    },
  );
  await page.goto(`${url}/docs`);
  await page.getByText('Accounts', { exact: true }).first().waitFor();
  const shown = await page.locator('body').innerText();
  const found = await search(page, 'heartbeat');
  const answer = await send(page);
  const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
  return { shown, found, answer, stored, problems, foreign };
}

(async () => {
  const browser = await chromium.launch({ executablePath });
  try {
    process.stdout.write(JSON.stringify(await read(browser)));
  } finally {
    await browser.close();
  }
})();
