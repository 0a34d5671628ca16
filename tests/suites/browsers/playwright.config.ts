import { defineConfig, devices } from '@playwright/test';

export default defineConfig({
  testDir: './tests',
  retries: 0,
  workers: 2,
  projects: [
    { name: 'chrome', use: { ...devices['Desktop Chrome'], channel: 'chrome' } },
    { name: 'edge', use: { ...devices['Desktop Edge'], channel: 'msedge' } },
    { name: 'beta', use: { channel: 'chrome-beta', headless: false } },
    { name: 'fox', use: devices['Desktop Firefox'] },
    { name: 'safari', use: devices['iPhone 15'] },
  ],
});
