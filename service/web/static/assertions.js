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
