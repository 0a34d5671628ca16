import { expect } from '@playwright/test';
import { test } from './fixtures';

test.describe('basket', () => {
  test('holds a lamp @smoke', async ({ shop, isMobile }, about) => {
    await expect(shop.heading).toHaveText('Basket');
    expect(isMobile).toBe(about.project.name === 'phone');
  });

  test('is mended at the second try', async ({ shop }, about) => {
    await expect(shop.heading).toHaveText('Basket');
    expect(about.retry).toBe(1);
  });

  test.skip('is not there yet', async () => {});

  test('is known to be broken', async () => {
    test.fail();
    expect(1).toBe(2);
  });
});
