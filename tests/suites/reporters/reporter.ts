import { appendFileSync, createWriteStream, mkdirSync, type WriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { FullResult, Reporter, TestCase, TestResult } from '@playwright/test/reporter';

export default class implements Reporter {
  #stream: WriteStream | null = null;

  onTestBegin() {
    mkdirSync('out', { recursive: true });
    this.#stream ??= createWriteStream('out/stream.log');
  }

  onTestEnd(test: TestCase, result: TestResult) {
    appendFileSync('out/each.txt', `${test.title} ${result.status}\n`);
    this.#stream?.write(`${test.title}\n`);
  }

  async onEnd(result: FullResult) {
    await writeFile('out/end.txt', result.status);
    if (this.#stream) await new Promise((resolve) => this.#stream.end(resolve));
  }
}
