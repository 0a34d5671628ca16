import { mkdirSync, writeFileSync } from 'node:fs';

/** A session that only tests may see. */
export default function () {
  mkdirSync('auth', { recursive: true });
  writeFileSync('auth/session.json', '{"token": "of-a-session"}');
}
