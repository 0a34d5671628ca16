// What pages do with a script; without it they show the same.

const announcer = document.getElementById("announcer");

/** Say what happened, to whoever listens instead of looking. */
export function announce(text) {
  announcer.textContent = text;
}

// Forms and calls of htmx carry the token of the page.
document.addEventListener("htmx:config:request", (event) => {
  const token = document.body.dataset.csrf;
  if (token) event.detail.ctx.request.headers["X-CSRF-Token"] = token;
});

// Copy buttons.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.parentElement.querySelector("code").textContent;
  await navigator.clipboard.writeText(text);
  const label = button.textContent;
  button.textContent = "Copied";
  announce("Copied.");
  setTimeout(() => { button.textContent = label; }, 1500);
});

// One menu is open at a time, and closes when one clicks beside it or presses Escape.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// What cannot be undone is asked for once more.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
}, true);

// Theme and time zone.
const YEAR_S = 31536000;
function keep(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=${value ? YEAR_S : 0}; samesite=lax`;
}
const wantsUtc = () => localStorage.getItem("picket_zone") === "utc";
document.addEventListener("change", (event) => {
  const choice = event.target.closest("[data-choice]")?.dataset.choice;
  if (choice === "theme") {
    const theme = event.target.value === "system" ? "" : event.target.value;
    keep("picket_theme", theme);
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    document.dispatchEvent(new Event("picket:theme"));
  } else if (choice === "zone") {
    localStorage.setItem("picket_zone", event.target.value);
    showTimes(document);
  }
});
for (const radio of document.querySelectorAll('[data-choice="zone"] input')) {
  radio.checked = (radio.value === "utc") === wantsUtc();
}

// Times: exact ones in the zone that was chosen, ages as they grow.
const DAY = { year: "numeric", month: "2-digit", day: "2-digit" };
const CLOCK = { hour: "2-digit", minute: "2-digit" };
const SECONDS = { ...CLOCK, second: "2-digit" };
const formats = {};
function format(at, parts) {
  const zone = wantsUtc() ? "UTC" : undefined;
  const key = `${zone} ${Object.keys(parts)}`;
  formats[key] ||= new Intl.DateTimeFormat("sv-SE", { ...parts, timeZone: zone });
  return formats[key].format(at);
}
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const skewMs = Date.parse(document.body.dataset.now || "") - Date.now() || 0;

function age(seconds) {
  for (const [size, name] of UNITS) if (seconds >= size) return `${Math.floor(seconds / size)} ${name}`;
  return "now";
}

/** The time alone of what is today; the whole stands in the title. */
function exact(at, clock) {
  const isToday = format(at, DAY) === format(Date.now() + skewMs, DAY);
  return format(at, isToday ? clock : { ...DAY, ...clock });
}

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = format(at, { ...DAY, ...SECONDS, timeZoneName: "short" });
    if ("exact" in time.dataset) time.textContent = exact(at, time.dataset.exact === "minute" ? CLOCK : SECONDS);
    if ("age" in time.dataset) {
      const text = age((Date.now() + skewMs - at) / 1000);
      time.textContent = time.dataset.age && text !== "now" ? `${text} ago` : text;
    }
  }
}
showTimes(document);
setInterval(() => { if (!document.hidden) showTimes(document); }, 10000);
document.addEventListener("htmx:after:swap", () => showTimes(document));

// Rows that lead somewhere: the whole row does what its link does.
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr.is-link, li.is-link");
  if (!row || event.target.closest("a, button, input, label, summary")) return;
  if (window.getSelection().toString()) return;
  const link = row.querySelector("a[href]");
  if (event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
  else link.click();
});
