import { defineConfig } from '@playwright/test';

const testDir = await Promise.resolve('./tests');

export default defineConfig({ testDir });
