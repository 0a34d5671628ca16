// The charts of a check's page, its zoom, and its renewal.

const section = document.getElementById("charts");
const MARK_PX = 9;
let drawn = null;
let plots = [];

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas knows no light-dark(): ask an element what a colour of the tokens comes to.
const probe = document.createElement("i");
probe.hidden = true;
function color(name) {
  probe.style.color = `var(${name})`;
  if (!probe.isConnected) document.body.append(probe);
  return getComputedStyle(probe).color;
}

function faint(of, share) {
  return `color-mix(in oklab, ${of} ${share * 100}%, transparent)`;
}

// Numbers as the pages show them.
function showMs(ms) {
  if (ms < 1) return ms <= 0 ? "0 ms" : "<1 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 59500) return `${Math.round(ms / 1000)} s`;
  for (const [size, name, part, small] of [[864e5, "d", 36e5, "h"], [36e5, "h", 6e4, "min"], [6e4, "min", 1e3, "s"]]) {
    if (ms < size) continue;
    const rest = Math.floor((ms % size) / part);
    return `${Math.floor(ms / size)} ${name}${rest ? ` ${rest} ${small}` : ""}`;
  }
  return `${ms} ms`;
}
function show(value, unit) {
  if (value == null) return "–";
  if (unit === "ms") return showMs(value);
  if (unit === "s") return showMs(value * 1000);
  return unit === "%" ? `${Math.round(value * 100) / 100} %` : String(Math.round(value * 1000) / 1000);
}

// Ticks of a time axis, in the zone that was chosen.
const isUtc = () => localStorage.getItem("picket_zone") === "utc";
const tzDate = (seconds) => {
  const date = new Date(seconds * 1000);
  return isUtc() ? window.uPlot.tzDate(date, "Etc/UTC") : date;
};
const two = (number) => String(number).padStart(2, "0");
function timeTicks(u, splits, _axis, _space, step) {
  let day = "";
  return splits.map((at) => {
    const date = tzDate(at);
    const today = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
    const isNew = today !== day;
    day = today;
    if (step >= 86400) return today;
    return isNew && u.width > 500 ? `${today} ${clock}` : clock;
  });
}
function dayAndClock(seconds) {
  const date = tzDate(seconds);
  return [`${two(date.getMonth() + 1)}-${two(date.getDate())}`, `${two(date.getHours())}:${two(date.getMinutes())}`];
}
function when(seconds) {
  const [day, clock] = dayAndClock(seconds);
  return day === dayAndClock(drawn.to)[0] ? clock : `${day} ${clock}`;
}

/** The time that a point stands for: its bucket, or the event itself. */
function stretch(at) {
  if (!drawn.step) return when(at);
  const begin = Math.floor(at / drawn.step) * drawn.step;
  const from = Math.max(begin, drawn.from), to = Math.min(begin + drawn.step, drawn.to);
  const [day, clock] = dayAndClock(to);
  return dayAndClock(from)[0] === day ? `${when(from)}–${clock}` : `${when(from)} – ${when(to)}`;
}

// A hole of one bucket is the jitter of a schedule; longer ones are holes.
function gapsOf(stepS) {
  return (u, _series, _first, _last, gaps) => {
    const least = (u.valToPos(stepS * 2.5, "x", true) - u.valToPos(0, "x", true));
    return gaps.filter(([from, to]) => to - from > least);
  };
}

function marks() {
  return [...document.querySelectorAll("#events [data-at]")].map((one) => ({
    at: Number(one.dataset.at), state: one.dataset.state,
    text: (one.querySelector("span:not([aria-hidden])") || one).textContent.trim(),
  }));
}

/** Shade what failed, behind the lines; and mark what happened, above them. */
function surroundings({ failing, unseen, withMarks }) {
  return {
    hooks: {
      drawClear: [(u) => {
        const { ctx, bbox } = u;
        const shade = (spans, style) => {
          ctx.fillStyle = style;
          for (const [from, to] of spans) {
            const left = Math.max(u.valToPos(from, "x", true), bbox.left);
            const right = Math.min(u.valToPos(to, "x", true), bbox.left + bbox.width);
            if (right > left) ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
          }
        };
        ctx.save();
        shade(failing, faint(color("--failing"), 0.13));
        if (unseen.length) shade(unseen, hatch(ctx));
        ctx.restore();
      }],
      draw: withMarks ? [(u) => {
        const { ctx, bbox } = u;
        const size = MARK_PX * devicePixelRatio;
        ctx.save();
        for (const mark of marks()) {
          const x = u.valToPos(mark.at, "x", true);
          if (x < bbox.left || x > bbox.left + bbox.width) continue;
          ctx.strokeStyle = ctx.fillStyle = color(mark.state === "edit" ? "--text-quiet" : `--${mark.state}`);
          ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
          ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
          ctx.setLineDash([]);
          shape(ctx, mark.state, x, bbox.top, size);
        }
        ctx.restore();
      }] : [],
    },
  };
}

/** Hatching: nobody looked. */
function hatch(ctx) {
  const size = Math.round(6 * devicePixelRatio);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext("2d");
  pen.strokeStyle = faint(color("--missed"), 0.5);
  pen.lineWidth = devicePixelRatio;
  for (const shift of [-size, 0, size]) { pen.moveTo(shift, size); pen.lineTo(shift + size, 0); }
  pen.stroke();
  return ctx.createPattern(tile, "repeat");
}

function shape(ctx, state, x, y, size) {
  const half = size / 2;
  ctx.beginPath();
  if (state === "failing") ctx.rect(x - half, y - half, size, size);
  else if (state === "passing") ctx.arc(x, y, half, 0, 7);
  else if (state === "degraded") { ctx.moveTo(x, y - half); ctx.lineTo(x + half, y + half); ctx.lineTo(x - half, y + half); }
  else { ctx.moveTo(x, y - half); ctx.lineTo(x + half, y); ctx.lineTo(x, y + half); ctx.lineTo(x - half, y); }
  ctx.fill();
}

// Steps of an axis whose labels are not rounded.
const MILLISECONDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5];
const SECONDS = [1, 5, 10, 30, 60, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];
const STEPS = { ms: MILLISECONDS, s: SECONDS };

function zoom(u) {
  if (u.select.width < 4) return;
  const from = Math.floor(u.posToVal(u.select.left, "x"));
  const to = Math.ceil(u.posToVal(u.select.left + u.select.width, "x"));
  const query = new URLSearchParams(location.search);
  for (const name of ["range", "page"]) query.delete(name);
  query.set("from", from);
  query.set("to", to);
  location.assign(`${section.dataset.page}?${query}`);
}

function options(plot, { unit, series, bands, top, around, onMove, isSmall }) {
  const grid = { stroke: color("--line-soft"), width: 1 };
  const text = { stroke: color("--text-quiet"), font: `12px ${token("--font")}`, ticks: { show: false } };
  return {
    width: plot.clientWidth, height: plot.clientHeight, tzDate,
    padding: [MARK_PX, 22, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, sync: { key: "check" }, y: false },
    select: { over: true },
    scales: { x: { time: true, range: [drawn.from, drawn.to] }, y: { range: (_u, _least, most) => [0, top || (most || 1) * 1.08] } },
    axes: [
      { ...text, grid: { show: false }, space: 90, size: 28, values: timeTicks },
      { ...text, grid, size: 62, space: isSmall ? 28 : 44, ...(STEPS[unit] ? { incrs: STEPS[unit] } : {}), values: (_u, splits) => splits.map((one) => show(one, unit)) },
    ],
    series: [{}, ...series], bands,
    hooks: { setSelect: [zoom], setCursor: [onMove] },
    plugins: [surroundings(around)],
  };
}

function line(one, chart) {
  const stroke = color(`--series-${one.color}`);
  const common = { label: one.label, gaps: gapsOf(drawn.step), points: { size: 4, fill: stroke, stroke } };
  if (!one.isPhase) return { ...common, stroke, width: 1.5, dash: one.label.startsWith("Overdue") ? [6, 4] : undefined };
  return { ...common, stroke, width: 1, fill: faint(stroke, 0.55), points: { show: false } };
}

function drawChart(figure, chart) {
  const plot = figure.querySelector(".plot");
  const outputs = figure.querySelectorAll("output");
  const about = figure.querySelector(".about-time");
  const [times, ...values] = chart.columns;
  if (!values.some((column) => column.some((one) => one != null))) {
    plot.textContent = "Nothing was measured in this range.";
    plot.classList.add("is-empty");
    return;
  }
  // Phases stand on each other: the topmost comes first, the one below covers its foot.
  const phases = chart.lines.map((one, index) => ({ one, values: values[index] })).filter(({ one }) => one.isPhase);
  const others = chart.lines.map((one, index) => ({ one, values: values[index] })).filter(({ one }) => !one.isPhase);
  const sums = [];
  for (const phase of phases) {
    const below = sums.at(-1);
    sums.push(phase.values.map((value, index) => (value == null && below?.[index] == null ? null : (value || 0) + (below?.[index] || 0))));
  }
  const series = [...phases.map(({ one }) => line(one, chart)).reverse(), ...others.map(({ one }) => line(one, chart))];
  const data = [times, ...sums.reverse(), ...others.map((other) => other.values)];
  const bands = phases.slice(1).map((_, index) => ({ series: [index + 1, index + 2] }));
  const newest = times.findLastIndex((_, at) => values.some((column) => column[at] != null));
  const tellValues = (at) => {
    about.textContent = stretch(times[at ?? newest]);
    chart.lines.forEach((_one, index) => { outputs[index].textContent = show(values[index][at ?? newest], chart.unit); });
  };
  tellValues(null);
  const onMove = (u) => {
    const at = u.cursor.idx;
    tellValues(at);
    tell(u, at == null ? null : times[at]);
  };
  plots.push(new window.uPlot(options(plot, { unit: chart.unit, series, bands, around: { failing: drawn.failing, unseen: drawn.unseen, withMarks: true }, onMove }), data, plot));
}

// What happened near the cursor, and when that is.
function tell(u, at) {
  let tip = u.over.querySelector(".tip");
  if (!tip) { tip = document.createElement("div"); tip.className = "tip"; u.over.append(tip); }
  tip.hidden = at == null || u.cursor.left < 0;
  if (tip.hidden) return;
  const x = u.cursor.left;
  const near = marks().filter((mark) => Math.abs(u.valToPos(mark.at, "x") - x) < MARK_PX);
  tip.textContent = [stretch(at), ...near.map((mark) => mark.text)].join(" · ");
  const width = tip.offsetWidth;
  tip.style.left = `${Math.min(Math.max(x - width / 2, 0), u.over.clientWidth - width)}px`;
}

function drawPlaces() {
  const all = [...document.querySelectorAll("[data-place]")].map((plot) => ({ plot, values: drawn.places[plot.dataset.place] }));
  const unit = drawn.charts[0].unit;
  const top = Math.max(1, ...all.flatMap(({ values }) => values || []).filter((one) => one != null)) * 1.08;
  for (const { plot, values } of all) {
    if (!values) { plot.textContent = "No run."; plot.classList.add("is-empty"); continue; }
    const output = plot.parentElement.querySelector("output");
    const known = values.filter((one) => one != null);
    const last = known.length ? show(known.at(-1), unit) : "";
    output.textContent = last;
    const stroke = color("--series-1");
    const series = [{ stroke, width: 1.25, spanGaps: true, points: { show: known.length < 3, size: 4, fill: stroke, stroke } }];
    const onMove = (u) => { output.textContent = u.cursor.idx == null ? last : show(values[u.cursor.idx], unit); };
    plots.push(new window.uPlot(options(plot, { unit, series, top, around: { failing: [], unseen: [], withMarks: false }, onMove, isSmall: true }), [drawn.charts[0].columns[0], values], plot));
  }
}

function draw() {
  for (const plot of plots) plot.destroy();
  plots = [];
  for (const plot of section.querySelectorAll(".plot")) { plot.textContent = ""; plot.classList.remove("is-empty"); }
  for (const figure of section.querySelectorAll("[data-chart]")) drawChart(figure, drawn.charts[figure.dataset.chart]);
  drawPlaces();
}

async function load() {
  const answer = await fetch(section.dataset.series, { credentials: "include" });
  if (!answer.ok || answer.redirected) return;
  drawn = await answer.json();
  draw();
}

if (section) {
  load(); // not awaited: changes may be told meanwhile
  document.addEventListener("picket:theme", () => drawn && draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn && draw());
  document.addEventListener("change", (event) => { if (drawn && event.target.closest('[data-choice="zone"]')) draw(); });
  let width = section.clientWidth;
  new ResizeObserver(() => {
    if (!drawn || section.clientWidth === width) return;
    width = section.clientWidth;
    draw();
  }).observe(section);
}

// The page is renewed in place when its check changes, unless somebody types or reads in what would change.
async function renew() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { credentials: "include" });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-renew]")) {
    const next = fresh.getElementById(part.id);
    const isBusy = part.contains(document.activeElement) || part.contains(getSelection().anchorNode) && !getSelection().isCollapsed;
    if (!next || isBusy || part.querySelector("form.preview") || part.innerHTML === next.innerHTML) continue;
    part.replaceChildren(...next.childNodes);
    window.htmx.process(part);
  }
  document.dispatchEvent(new Event("htmx:after:swap"));
  if (section) await load();
}
document.getElementById("renewal").addEventListener("picket:change", async ({ target }) => {
  await renew().catch(() => {}); // the service is away: the next change is told again
  target.dispatchEvent(new CustomEvent("htmx:finally:request"));
});

// A run on demand has ended: what it changed is shown at once.
let seen = document.querySelector("#progress[data-over]");
document.addEventListener("htmx:after:swap", () => {
  const over = document.querySelector("#progress[data-over]");
  if (over && !seen) renew();
  seen = over;
});
