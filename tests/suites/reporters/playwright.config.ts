import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: './tests',
  workers: 1,
  retries: 1,
  use: { trace: 'on' },
  globalSetup: './setup.ts',
  reporter: [
    ['line'],
    ['html', { outputFolder: 'out/html' }],
    ['blob', { outputDir: 'out/blob' }],
    ['junit', { outputFile: 'out/junit.xml' }],
    ['json', { outputFile: 'out/own.json' }],
    ['./reporter.ts'],
  ],
  projects: [{ name: 'one' }, { name: 'two', grep: /@both/ }],
});
