import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: './tests',
  retries: 0,
  projects: [{ name: 'small', use: { viewport: { width: 400, height: 600 } } }, { name: 'large' }],
});
