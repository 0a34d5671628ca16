// Runs in every document before its own scripts: measures it, and tells what it has by a binding.
// Nothing waits for the page to close: each new measure is told at once, the newest one counts.
(webVitals, binding) => {
  const tell = window[binding];
  if (window.top !== window || !tell) return;
  // Not deleted: Playwright before 1.54 looks the binding up by this name.
  Object.defineProperty(window, binding, { enumerable: false });

  const metrics = {};
  let planned = false;
  const send = () => {
    planned = false;
    const seen = { url: location.href, origin: performance.timeOrigin, metrics };
    Promise.resolve(tell(JSON.stringify(seen))).catch(() => {});
  };
  const later = window.setTimeout.bind(window);
  const plan = () => {
    if (planned) return;
    planned = true;
    later(send, 0);
  };
  const set = (name, value) => {
    metrics[name] = value;
    plan();
  };

  const navigation = () => performance.getEntriesByType('navigation')[0];
  const activation = () => navigation()?.activationStart || 0;
  const since = (time) => Math.max(0, time - activation());

  // Known already, while the library tells it only after the load event.
  if (navigation()?.responseStart > 0) set('ttfb', since(navigation().responseStart));
  const all = { reportAllChanges: true };
  webVitals.onTTFB((metric) => set('ttfb', metric.value), all);
  webVitals.onLCP((metric) => set('lcp', metric.value), all);
  webVitals.onCLS((metric) => set('cls', metric.value), all);

  // Total blocking time is not in the library: what of each long task after the first contentful
  // paint goes beyond 50 ms, until the page is left.
  const tasks = [];
  const block = () => {
    if (metrics.fcp === undefined) return;
    const start = metrics.fcp + activation();
    let total = 0;
    for (const task of tasks) {
      const from = Math.max(task.startTime, start);
      total += Math.max(0, task.startTime + task.duration - from - 50);
    }
    set('tbt', total);
  };
  webVitals.onFCP((metric) => {
    set('fcp', metric.value);
    block();
  }, all);
  const observer = new PerformanceObserver((list) => {
    tasks.push(...list.getEntries());
    block();
  });
  observer.observe({ type: 'longtask', buffered: true });

  const timings = () => {
    const { domContentLoadedEventEnd, loadEventEnd } = navigation() ?? {};
    if (domContentLoadedEventEnd > 0) set('domContentLoaded', since(domContentLoadedEventEnd));
    if (loadEventEnd > 0) set('load', since(loadEventEnd));
  };
  addEventListener('DOMContentLoaded', () => later(timings, 0));
  addEventListener('load', () => later(timings, 0));
  addEventListener('pagehide', send, true);
  plan();
};
