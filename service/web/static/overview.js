// Lists of checks by keys: / search, j and k move, Enter opens, r runs, x selects, ? shows them.

const search = document.getElementById("q");
const keys = document.getElementById("keys");
const said = document.getElementById("said");

const links = () => [...document.querySelectorAll(".checks .what > a")];
const current = () => document.activeElement?.closest?.(".check");

function move(step) {
  const all = links();
  if (!all.length) return;
  const here = current()?.querySelector(".what > a");
  const place = here ? all.indexOf(here) + step : step > 0 ? 0 : all.length - 1;
  const next = all[Math.min(Math.max(place, 0), all.length - 1)];
  next.focus({ preventScroll: true });
  next.closest(".check").scrollIntoView({ block: "nearest" });
}

function say(line) {
  said.textContent = line;
}

async function run(row) {
  const token = document.body.dataset.csrf;
  const body = new URLSearchParams({ check: row.id.slice(2) });
  say("Starting…");
  try {
    let answer = await ask("overview/run", { method: "POST", body, headers: { "X-CSRF-Token": token } });
    say(answer.line);
    while (answer.next) {
      answer = await ask(answer.next.slice(1));
      say(answer.line);
    }
  } catch {
    say("The service could not be reached; nothing is known of the run.");
  }
}

async function ask(path, init) {
  const base = document.querySelector(".brand").href;
  const answer = await fetch(new URL(path, base), { ...init, redirect: "error" });
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.json();
}

// What is selected stays so while the list is fetched anew.
const selection = document.getElementById("selection");
const selected = new Set();
const boxes = () => [...document.querySelectorAll(".pick")];

function showSelection() {
  for (const box of boxes()) box.checked = selected.has(box.value);
  if (selection) selection.querySelector("[data-selected]").textContent = `${selected.size} selected`;
}

function select(box, isOn) {
  if (isOn) selected.add(box.value); else selected.delete(box.value);
  showSelection();
}

function toggle() {
  const box = current()?.querySelector(".pick");
  if (box) select(box, !selected.has(box.value));
  else if (selection) say("Choose a check with j and k first.");
}

async function actOnSelected(event) {
  event.preventDefault();
  const body = new URLSearchParams(new FormData(selection, event.submitter));
  say("Working…");
  try {
    const answer = await ask("overview/selected", { method: "POST", body, headers: { accept: "application/json" } });
    say(answer.line);
    if (!answer.isRefused) selected.clear();
  } catch {
    say("The service could not be reached; look at the list for what was done.");
  }
  showSelection();
}

document.addEventListener("change", (event) => {
  if (event.target.matches(".pick")) select(event.target, event.target.checked);
});
document.addEventListener("htmx:after:swap", () => {
  const listed = new Set(boxes().map((box) => box.value));
  for (const one of selected) if (!listed.has(one)) selected.delete(one);
  showSelection();
});
selection?.addEventListener("submit", actOnSelected);
const all = selection?.querySelector("[data-select-all]");
if (all) {
  all.hidden = false;
  all.addEventListener("click", () => { for (const box of boxes()) selected.add(box.value); showSelection(); });
}
selection?.addEventListener("reset", () => { selected.clear(); setTimeout(showSelection); });

const ACTIONS = {
  "/": () => { search?.focus(); search?.select(); },
  j: () => move(1),
  k: () => move(-1),
  r: () => { const row = current(); if (row) run(row); else say("Choose a check with j and k first."); },
  x: toggle,
  "?": () => keys.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const isTyping = event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");
  if (isTyping) {
    if (event.key === "Escape" && event.target === search) search.blur();
    return;
  }
  const act = ACTIONS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const hint = document.querySelector(".keys-hint");
hint.hidden = false;
hint.querySelector("[data-keys]").addEventListener("click", () => keys.showModal());
