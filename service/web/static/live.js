// Pages that stay true: the service says that something has changed, and the parts that want it
// (`data-fresh`) hear `picket:change` and fetch themselves anew. A hidden page asks for nothing;
// without streams it asks now and then.

const POLL_MS = 15000;
const READY_WITHIN_MS = 10000;
const LEAST_MS = 1000;
const NO_HASTE_MS = 3000; // when all that is new has passed
const SHARE = 10; // a page is busy with itself for a tenth of the time at most
const address = document.body.dataset.live;

let stream = null;
let poll = 0;
let patience = 0;
let pending = null;
let timer = 0;
let lastAt = performance.now();
let tookMs = 0;
let isBusy = false;

function isNear(part) {
  const box = part.getBoundingClientRect();
  return box.bottom > -300 && box.top < innerHeight + 300;
}

const isChoosing = () => !getSelection().isCollapsed;

async function refresh() {
  if (document.hidden) return;
  if (isChoosing()) return plan();
  pending = null;
  isBusy = true;
  lastAt = performance.now();
  const parts = [...document.querySelectorAll("[data-fresh]")].filter(isNear);
  await Promise.all(parts.map(fetchAnew));
  tookMs = performance.now() - lastAt;
  isBusy = false;
  plan();
}

function fetchAnew(part) {
  return new Promise((done) => {
    const over = () => { part.removeEventListener("htmx:finally:request", over); done(); };
    part.addEventListener("htmx:finally:request", over);
    setTimeout(over, 5000);
    part.dispatchEvent(new CustomEvent("picket:change"));
  });
}

function plan() {
  clearTimeout(timer);
  if (!pending || isBusy) return;
  const least = pending.quiet ? NO_HASTE_MS : LEAST_MS;
  const wait = Math.max(least, SHARE * tookMs) - (performance.now() - lastAt);
  timer = setTimeout(refresh, Math.max(0, isChoosing() ? LEAST_MS : wait));
}

function note({ quiet }) {
  pending = { quiet: quiet && (pending?.quiet ?? true) };
  plan();
}

const ANYTHING = { quiet: false };

function startPolling() {
  poll ||= setInterval(() => { if (!document.hidden) note(ANYTHING); }, POLL_MS);
}

function stopPolling() {
  clearInterval(poll);
  clearTimeout(patience);
  poll = 0;
}

function open() {
  if (stream || document.hidden) return;
  stream = new EventSource(address);
  patience = setTimeout(startPolling, READY_WITHIN_MS);
  stream.addEventListener("ready", () => {
    stopPolling();
    note({ quiet: true }); // what happened since the page was made, or the last stream ended
  });
  stream.addEventListener("change", (event) => note(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    startPolling();
    if (stream?.readyState === EventSource.CLOSED) close();
  });
}

function close() {
  stream?.close();
  stream = null;
  clearTimeout(patience);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    close();
  } else {
    note(ANYTHING);
    open();
  }
});
addEventListener("pagehide", close);
addEventListener("pageshow", open);
open();
