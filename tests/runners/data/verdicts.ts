// Scripts whose verdicts are compared with those of plain `playwright test`: bodies of one test,
// then whole files. SITE is the site of the comparison. What is alone would spoil the plain run of others.

// body: opens
await page.goto('SITE/tea'); await expect(page.locator('h1')).toHaveText('Good tea');

// body: title
await page.goto('SITE/tea'); expect(await page.title()).toBe('Tea');

// body: click
await page.goto('SITE/tea'); await page.click('button');
await expect(page.locator('p')).toHaveText('Bought');

// body: fill
await page.goto('SITE/tea'); await page.fill('input', 'oolong');
await expect(page.locator('input')).toHaveValue('oolong');

// body: evaluate
await page.goto('SITE/tea'); expect(await page.evaluate(() => 1 + 1)).toBe(2);

// body: type argument
await page.goto('SITE/tea');
const two = await page.evaluate<number>(() => 2);
expect(two).toBe(2);

// body: type arguments in a step
await test.step<Object>('adds', async () => { expect(1).toBe(1); });

// body: step
await test.step('outer', async () => { await test.step('inner', async () => {}); });

// body: request
expect((await request.get('SITE/tea')).status()).toBe(200);

// body: json
const { tea } = await (await request.get('SITE/json')).json(); expect(tea).toBe(1);

// body: slow answer
await page.goto('SITE/slow'); await expect(page.locator('h1')).toBeVisible();

// body: left before it loads
await page.goto('SITE/loading', { waitUntil: 'commit' });

// body: polls
let n = 0; await expect.poll(() => ++n).toBe(3);

// body: to pass
let n = 0; await expect(() => expect(++n).toBe(2)).toPass();

// body: handled rejection
await Promise.reject(new Error('no')).catch(() => {});

// body: expected failure
test.fail(); expect(1).toBe(2);

// body: annotated
test.info().annotations.push({ type: 'issue', description: '1' });

// body: attaches
await test.info().attach('tea', { body: 'green', contentType: 'text/plain' });

// body: route
await page.route('**/tea', (route) => route.fulfill({ body: '<h1>No</h1>' }));
await page.goto('SITE/tea'); await expect(page.locator('h1')).toHaveText('No');

// body: closes its page
await page.goto('SITE/tea'); await page.close();

// body: closes without waiting
await page.goto('SITE/tea'); void page.close();

// body: page throws
await page.goto('SITE/tea');
await page.evaluate(() => { setTimeout(() => { throw new Error('of the page'); }); });

// body: popup
await page.goto('SITE/tea'); const popup = page.waitForEvent('popup');
await page.evaluate(() => { window.open('/tea'); }); await (await popup).waitForLoadState();

// body: generics
const first = <T,>(all: T[]): T => all[0];
expect(first<number>([3])).toBe(3);

// body: comparison
const [a, b, c] = [1, 2, 3]; expect(a < b && c > (b)).toBe(true);

// body: enumeration
enum Kind { Green = 2 }
expect(Kind.Green).toBe(2);

// body: class
class Tea<T> { constructor(readonly kind: T) {} }
expect(new Tea<number>(2).kind).toBe(2);

// body: soft and right
expect.soft(1).toBe(1);

// body: all at once
await Promise.all([1, 2].map((n) => request.get(`SITE/tea?${n}`)));

// body: goto not awaited
page.goto('SITE/slow');

// body: goto not awaited, hanging
page.goto('SITE/hangs');

// body: goto not awaited, loading
page.goto('SITE/loading');

// body: click not awaited
await page.goto('SITE/tea'); page.click('#later');

// body: expect not awaited
await page.goto('SITE/tea'); expect(page.locator('#later')).toBeVisible();

// body: expect not awaited, wrong
await page.goto('SITE/tea');
expect(page.locator('h1')).toHaveText('Bad tea');

// body: expect not awaited, loading
await page.goto('SITE/loading', { waitUntil: 'commit' });
expect(page.locator('h1')).toHaveText('Later tea');

// body: evaluate not awaited
await page.goto('SITE/tea'); page.evaluate(() => new Promise(() => {}));

// body: wait not awaited
await page.goto('SITE/tea'); page.waitForTimeout(200);

// body: selector not awaited
await page.goto('SITE/tea'); page.waitForSelector('#later');

// body: navigation after goto not awaited
await page.goto('SITE/tea'); page.goto('SITE/slow');

// body: function not awaited
const open = async () => { await page.goto('SITE/slow'); await expect(page).toHaveTitle('Tea'); };
open();

// body alone: request not awaited
request.get('SITE/slow');

// body alone: request not awaited, hanging
request.get('SITE/hangs');

// body: page closed under a call
const going = page.goto('SITE/slow'); await page.close(); await going;

// body: goto hangs
test.setTimeout(1500); await page.goto('SITE/hangs');

// body: goto hangs, own limit
await page.goto('SITE/hangs', { timeout: 400 });

// body: load hangs
await page.goto('SITE/loading', { timeout: 400 });

// body: load hangs until the test's end
test.setTimeout(1500); await page.goto('SITE/loading');

// body: stream hangs
await page.goto('SITE/streams', { timeout: 400 });

// body: wrong on a loading page
await page.goto('SITE/loading', { waitUntil: 'commit' });
await expect(page.locator('h1')).toHaveText('Bad tea', { timeout: 300 });

// body: throws on a loading page
await page.goto('SITE/loading', { waitUntil: 'commit' });
throw new Error('gave up');

// body: wrong on a streaming page
await page.goto('SITE/streams', { waitUntil: 'commit' });
await expect(page.locator('h1')).toHaveText('Bad tea', { timeout: 300 });

// body: busy page
await page.goto('SITE/busy'); await page.click('button', { timeout: 500 });

// body: request hangs
await request.get('SITE/hangs', { timeout: 400 });

// body: request hangs until the test's end
test.setTimeout(1500); await request.get('SITE/hangs');

// body: expects
expect(1).toBe(2);

// body: expects with words
expect(1, 'the sum').toBe(2);

// body: text is another
await page.goto('SITE/tea');
await expect(page.locator('h1')).toHaveText('Bad tea', { timeout: 200 });

// body: nothing to click
await page.goto('SITE/tea'); await page.click('#none', { timeout: 200 });

// body: strictness
await page.goto('SITE/tea'); await page.locator('*').click({ timeout: 500 });

// body: refused
await page.goto('http://127.0.0.1:1/');

// body: throws
throw new Error('gave up');

// body: throws a text
throw 'gave up';

// body: throws in lines
throw new Error('gave up\nin two lines');

// body: type error
(null as any).tea();

// body: in the page
await page.evaluate(() => { throw new Error('in the page'); });

// body: time is up
test.setTimeout(1500); await new Promise(() => {});

// body: slow test
test.setTimeout(1500); test.slow(); await new Promise(() => {});

// body: soft
expect.soft(1).toBe(2);
expect.soft(3, 'the sum').toBe(4);

// body: soft, then hard
expect.soft(1).toBe(2);
expect(3).toBe(4);

// body: step fails
await test.step('adds', async () => {
  expect(1).toBe(2);
});

// body: typed step fails
await test.step<Object>('adds', async () => {
  expect(1).toBe(2);
});

// body: step in a step fails
await test.step('a', () => test.step('b', async () => {
  expect(1).toBe(2);
}));

// body: step has a limit
await test.step('a', () => new Promise(() => {}), { timeout: 200 });

// body: rejection nobody handles
void Promise.reject(new Error('lost')); await new Promise((done) => setTimeout(done, 300));

// body: error in a timer
setTimeout(() => { throw new Error('late'); }, 10);
await new Promise(() => {});

// body: passes though it should fail
test.fail(); expect(1).toBe(1);

// body: polls in vain
await expect.poll(() => 1, { timeout: 200 }).toBe(2);

// body: never comes to pass
await expect(() => expect(1).toBe(2)).toPass({ timeout: 200 });

// body: ends its process
process.exit(3);

// body: page crashes
await page.goto('chrome://crash').catch(() => {});
await page.click('button', { timeout: 500 });

// body: status
await expect(await request.get('SITE/none')).toBeOK();

// body: no json
await (await request.get('SITE/tea')).json();

// file: two pass
test('one', () => {});
test('two', () => {});

// file: one of two fails
test('one', () => {});
test('two', () => { expect(1).toBe(2); });

// file: both fail
test('one', () => { expect(1).toBe(2); });
test.describe('shop', () => {
  test('two', () => { expect.soft(3).toBe(4); expect(5).toBe(6); });
});

// file: skipped
test.skip('one', () => { expect(1).toBe(2); });

// file: skipped beside another
test.skip('one', () => {});
test('two', () => {});

// file: fixme
test.fixme('one', () => { expect(1).toBe(2); });
test('two', () => { test.skip(); });

// file alone: only
test.only('one', () => {});
test('two', () => { expect(1).toBe(2); });

// file alone: only fails
test('one', () => {});
test.only('two', () => { expect(1).toBe(2); });

// file: serial
test.describe.serial('shop', () => {
  test('one', () => { expect(1).toBe(2); });
  test('two', () => { expect(3).toBe(4); });
});

// file: retry
test.describe.configure({ retries: 1 });
test('one', () => { expect(test.info().retry).toBe(1); });

// file: retry in vain
test.describe.configure({ retries: 1 });
test('one', () => { expect(1).toBe(2); });

// file: before each
test.beforeEach(() => { expect(1).toBe(2); });
test('one', () => {});

// file: after each
test.afterEach(() => { expect(1).toBe(2); });
test('one', () => {});

// file: before all
test.beforeAll(() => { throw new Error('not ready'); });
test('one', () => {});
test('two', () => {});

// file: after all
test.afterAll(() => { throw new Error('not tidy'); });
test('one', () => {});

// file: hook hangs
test.beforeEach(async () => { test.setTimeout(1500); await new Promise(() => {}); });
test('one', () => {});

// file: fixture
const it = test.extend<{ tea: string }>({ tea: async ({}, use) => use('green') });
it('one', ({ tea }) => { expect(tea).toBe('green'); });

// file: fixture fails
const it = test.extend<{ tea: string }>({
  tea: async ({}, use) => { throw new Error('no tea'); },
});
it('one', ({ tea }) => {});

// file: fixture fails behind
const it = test.extend<{ tea: string }>({
  tea: async ({}, use) => { await use('green'); throw new Error('cold'); },
});
it('one', ({ tea }) => {});

// file: auto fixture
const it = test.extend<{ tea: void }>({
  tea: [async ({}, use) => { await use(); }, { auto: true }],
});
it('one', () => {});

// file alone: unknown fixture
test('one', ({ tea }: any) => {});

// file: after hook sees the page
test('one', async ({ page }) => { await page.goto('SITE/tea'); });
test.afterEach(async ({ page }) => { await expect(page).toHaveTitle('Tea'); });

// file: not awaited before a hook
test('one', async ({ page }) => { page.goto('SITE/slow'); });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
test.afterEach(async () => { await sleep(1500); });

// file alone: syntax
test('one', (;

// file alone: throws as it loads
throw new Error('at the top');
test('one', () => {});

// file alone: missing module
import { tea } from './tea';
test('one', () => { tea(); });

// file alone: no tests
const tea = 1;

// file alone: same title twice
test('one', () => {});
test('one', () => {});

// file: data
for (const n of [1, 2, 3]) test(`number ${n}`, () => { expect(n).not.toBe(2); });

// file: nested
test.describe('a', () => { test.describe('b', () => {
  test('one', () => { expect(1).toBe(2); });
}); });

// file: own browser
test('one', async ({ browser }) => {
  const page = await browser.newPage(); await page.goto('SITE/tea');
  await expect(page).toHaveTitle('Coffee', { timeout: 200 });
});

// file: options
test.use({ viewport: { width: 300, height: 300 } });
test('one', ({ page }) => { expect(page.viewportSize()).toEqual({ width: 300, height: 300 }); });

// file: timeout of a group
test.describe('shop', () => {
  test.describe.configure({ timeout: 300 });
  test('one', () => new Promise(() => {}));
});

// file: parallel
test.describe.configure({ mode: 'parallel' });
test('one', () => {});
test('two', () => { expect(1).toBe(2); });
