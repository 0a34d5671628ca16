import type { FullResult, Reporter } from '@playwright/test/reporter';

export default class implements Reporter {
  onEnd(result: FullResult) {
    console.log(`The suite's own reporter saw that it ${result.status}.`);
  }
}
