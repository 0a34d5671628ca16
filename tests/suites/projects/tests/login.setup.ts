import { writeFileSync } from 'node:fs';
import { test as setup } from '@playwright/test';

setup('log in', async () => {
  writeFileSync('state.json', JSON.stringify({ cookies: [], origins: [] }));
});
