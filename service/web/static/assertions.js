// Assertions: what fits a source is offered, and what has no use is out of sight.

function fit(row) {
  const source = row.querySelector('select[name$="].source"]');
  const comparison = row.querySelector('select[name$="].comparison"]');
  if (!source || !comparison || !source.name.includes("ssertions[")) return;
  const about = source.selectedOptions[0].dataset;
  fitComparisons(comparison, about.takes?.split(" "));
  const isAlone = "alone" in comparison.selectedOptions[0].dataset;
  show(row, "property", Boolean(about.part), about.part);
  show(row, "regex", Boolean(about.regex));
  show(row, "target", !isAlone);
}

function fitComparisons(comparison, takes) {
  for (const option of comparison.options) {
    const fits = !takes || !option.value || takes.includes(option.value);
    option.hidden = option.disabled = !fits && !option.selected;
  }
  // A new assertion compares in the usual way.
  if (takes && !comparison.value) comparison.value = takes.includes("EQUALS") ? "EQUALS" : takes[0];
}

/** A field that is filled in stays in sight: the service has to say that it has no effect. */
function show(row, name, isUseful, label) {
  const cell = row.querySelector(`.of-${name}`);
  if (!cell) return;
  cell.hidden = !isUseful && !cell.querySelector("input, textarea").value;
  if (label) cell.querySelector("label").textContent = label;
}

/** What most checks assert: label, source, comparison, target, and the part of the source. */
const PRESETS = [
  ["Status code is 200", "STATUS_CODE", "EQUALS", "200", ""],
  ["Faster than 1 s", "RESPONSE_TIME", "LESS_THAN", "1000", ""],
  ["Body contains …", "TEXT_BODY", "CONTAINS", "", ""],
  ["JSON value equals …", "JSON_BODY", "EQUALS", "", "$."],
  ["Header equals …", "HEADERS", "EQUALS", "", ""],
];

function offerPresets(rows) {
  const blank = rows.querySelector(":scope > template").content;
  const sources = [...blank.querySelectorAll('select[name$=".source"] option')].map((one) => one.value);
  const add = rows.querySelector("[data-add-row]");
  const bar = document.createElement("p");
  bar.className = "row";
  add.after(bar);
  bar.append(add);
  for (const preset of PRESETS.filter(([, source]) => sources.includes(source))) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = preset[0];
    button.addEventListener("click", () => { add.click(); fill(rows.querySelector(":scope > .entries > .entry:last-child"), preset); });
    bar.append(button);
  }
}

function fill(row, [, source, comparison, target, part]) {
  const field = (name) => row.querySelector(`[name$="].${name}"]`);
  field("source").value = source;
  field("comparison").value = comparison;
  field("target").value = target;
  if (part) field("property").value = part;
  fit(row);
  const next = !target && ["property", "target"].map(field).find((one) => one && !one.closest("[hidden]") && (!one.value || one.value === part));
  (next || field("target")).focus();
}

for (const rows of document.querySelectorAll('[data-rows$="assertions"]')) offerPresets(rows);

function fitAll() {
  for (const row of document.querySelectorAll('[data-rows$="assertions"] .entry')) fit(row);
}
fitAll();
document.addEventListener("change", (event) => {
  const row = event.target.closest('[data-rows$="assertions"] .entry');
  if (row) fit(row);
});
document.addEventListener("picket:row", (event) => {
  if (event.target.closest('[data-rows$="assertions"]')) fit(event.target);
});
