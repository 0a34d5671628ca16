import type { Page } from '@playwright/test';

export enum Shelf {
  Lamps = 'Lamps',
}

export async function openFront(page: Page, shelf: Shelf): Promise<void> {
  await page.setContent(`<h1>${shelf}</h1>`);
}
