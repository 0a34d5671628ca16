import type { Page } from '@playwright/test'

export class HomePage {
  constructor(private readonly page: Page) {}

  open() {
    return this.page.goto('/')
  }
}
