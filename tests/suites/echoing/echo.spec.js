const zlib = require('node:zlib');
const { test, expect } = require('@playwright/test');

const SITE = process.env.SITE;
const SECRET = process.env.SERVICE_SECRET_TOKEN;

test('uses a secret everywhere', async ({ page, context, request }, info) => {
  const encoded = encodeURIComponent(SECRET);
  await context.addCookies([{ name: 'token', value: encoded, url: SITE }]);
  await page.goto(`${SITE}/redirect/${encoded}?q=${encoded}#${encoded}`);
  await expect(page.locator('#ready')).toHaveText('ready');
  await page.locator('#field').fill(SECRET);
  await page.locator('#password').focus();
  await page.keyboard.type(SECRET);
  await page.locator('#letters').focus();
  for (const letter of SECRET) await page.keyboard.insertText(letter);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#download')]);
  await info.attach('download', { path: await download.path() });
  const headers = { authorization: 'Bearer bearer-0123456789', 'x-token': encoded };
  const answer = await request.post(`${SITE}/echo`, { headers, data: { secret: SECRET } });
  console.log(await answer.text());
  await request.post(`${SITE}/echo`, { form: { secret: SECRET } });
  const basic = Buffer.from(`user:${SECRET}`).toString('base64');
  await request.get(`${SITE}/echo`, { headers: { authorization: `Basic ${basic}` } });
  await info.attach('text', { body: `token ${SECRET}`, contentType: 'text/plain' });
  await info.attach('json', { body: JSON.stringify({ SECRET }), contentType: 'application/json' });
  await info.attach('packed', { body: zlib.gzipSync(SECRET), contentType: 'application/gzip' });
  await info.attach('shown', { body: await page.screenshot(), contentType: 'image/png' });
  await test.step(`a step with ${SECRET}`, async () => {});
  expect.soft(await page.title()).toBe(`not ${SECRET}`);
  throw new Error(`thrown with ${SECRET}`);
});
