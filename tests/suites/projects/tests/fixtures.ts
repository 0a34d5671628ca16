import { test as base, type Locator, type Page } from '@playwright/test';

class Shop {
  readonly heading: Locator;

  constructor(page: Page) {
    this.heading = page.getByRole('heading');
  }
}

export const test = base.extend<{ shop: Shop }>({
  storageState: 'state.json',
  shop: async ({ page }, use) => {
    await page.setContent('<h1>Basket</h1>');
    await use(new Shop(page));
  },
});
