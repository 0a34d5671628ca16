import { chromium, expect, test } from '@playwright/test';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const AGENTS = {
  plain: / HeadlessChrome\/\d+\.0\.0\.0 Safari\/537\.36 Picket\/\S+$/,
  phone: / Pixel 7\b.* Mobile Safari\/537\.36 Picket\/\S+$/,
  named: /^Lamps\/1$/,
};
const agent = () => navigator.userAgent;

test('pages are told who looks', async ({ page, browser }, { project }) => {
  expect(await page.evaluate(agent)).toMatch(AGENTS[project.name]);
  const contexts = await Promise.all([browser.newContext(), browser.newContext({ userAgent: 'X' })]);
  const pages = await Promise.all(contexts.map((one) => one.newPage()));
  expect(await pages[0].evaluate(agent)).toMatch(AGENTS[project.name]);
  expect(await pages[1].evaluate(agent)).toBe('X');
  await Promise.all(contexts.map((one) => one.close()));
  const place = mkdtempSync(join(tmpdir(), 'profile-'));
  const context = await chromium.launchPersistentContext(place, { userAgent: 'Y' });
  expect(await (await context.newPage()).evaluate(agent)).toBe('Y');
  await context.close();
});

test('is mended at the second try', async ({ page }, { retry, project, config }) => {
  test.skip(project.name !== 'plain');
  await page.setContent('<h1>Lamps</h1>');
  expect(config.workers).toBeLessThanOrEqual(4);
  expect(project.retries).toBe(2);
  expect(retry).toBe(1);
});
