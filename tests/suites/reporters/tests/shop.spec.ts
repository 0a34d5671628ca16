import { writeFileSync } from 'node:fs';
import { expect, test } from '@playwright/test';

test.describe('basket', () => {
  test('holds a lamp @both', async ({}) => {
    test.info().annotations.push({ type: 'issue', description: 'SHOP-1' });
    await test.step('fill it', async () => {
      await test.step('with a lamp', async () => {});
    });
    await test.info().attach('receipt', { body: 'one lamp', contentType: 'text/plain' });
    writeFileSync(test.info().outputPath('bill.txt'), 'one lamp');
    await test.info().attach('bill', { path: test.info().outputPath('bill.txt') });
    writeFileSync('by-a-test.txt', 'by a test');
  });

  test('is mended at the second try', async () => {
    console.log('a try');
    expect(test.info().retry).toBe(1);
  });
});

test('is broken', async () => {
  await test.step('count', async () => {
    expect.soft(1 + 1).toBe(3);
    expect(2 + 2).toBe(5);
  });
});

test.skip('is skipped', async () => {});

test('fails as it should', async () => {
  test.fail();
  expect(1).toBe(2);
});
