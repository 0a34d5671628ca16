// Forms: rows that are added and taken out, and nothing lost by leaving.
const forms = document.querySelectorAll("[data-form]");

// With a script, rows come when they are asked for; without one, two empty ones stand ready.
for (const blank of document.querySelectorAll("[data-blank]")) blank.remove();
for (const rows of document.querySelectorAll("[data-rows]")) {
  rows.dataset.next = rows.querySelectorAll(":scope > .entries > .entry").length;
}
for (const button of document.querySelectorAll("[data-add-row], [data-remove-row]")) button.hidden = false;

document.addEventListener("click", (event) => {
  const add = event.target.closest("[data-add-row]");
  if (add) addRow(add.closest("[data-rows]")).querySelector("input:not([type=hidden]), select, textarea").focus();
  const remove = event.target.closest("[data-remove-row]");
  if (remove) removeRow(remove.closest(".entry"));
});

function addRow(rows) {
  const row = rows.querySelector(":scope > template").content.cloneNode(true);
  setNumber(row, rows.dataset.next++);
  for (const blank of row.querySelectorAll("[data-blank]")) blank.remove();
  for (const button of row.querySelectorAll("[data-add-row], [data-remove-row]")) button.hidden = false;
  rows.querySelector(":scope > .entries").append(row);
  const added = rows.querySelector(":scope > .entries > .entry:last-child");
  // Rows inside of it begin with one.
  for (const inner of added.querySelectorAll("[data-rows]:has(> template)")) {
    inner.dataset.next = 0;
    addRow(inner);
  }
  added.dispatchEvent(new CustomEvent("picket:row", { bubbles: true }));
  markChanged(added);
  return added;
}

/** Give a new row its number: the first blank in its names, also of rows that it may get later. */
function setNumber(row, number) {
  for (const one of row.querySelectorAll("*")) {
    for (const key of ["name", "id", "for", "aria-describedby"]) {
      const value = one.getAttribute(key);
      if (value) one.setAttribute(key, value.replace("[__row__]", `[${number}]`));
    }
    if (one.content) setNumber(one.content, number);
  }
}

function removeRow(entry) {
  const rows = entry.closest("[data-rows]");
  markChanged(entry);
  entry.remove();
  rows.querySelector("[data-add-row]").focus();
  document.getElementById("announcer").textContent = "Removed.";
}

// What was wrong with a form says nothing of what is tried now.
document.addEventListener("htmx:before:request", (event) => {
  const form = event.target.matches(".try button") && event.target.closest("[data-form]");
  if (!form) return;
  for (const one of form.querySelectorAll(".problem, :scope > .note[role=alert]")) one.remove();
  for (const one of form.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  for (const one of form.querySelectorAll(".is-wrong")) one.classList.remove("is-wrong");
});

// Enter in a line of a form goes on to the next field: what is half filled in is not sent.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("[data-rows] input")) return;
  event.preventDefault();
  const fields = [...event.target.form.querySelectorAll("input:not([type=hidden]), select, textarea, button:not([hidden])")];
  fields[fields.indexOf(event.target) + 1]?.focus();
});

// Code: Tab indents it, and after Escape leads on to the next field as elsewhere; a file may be read in.
document.addEventListener("keydown", (event) => {
  const code = event.target;
  if (!code.matches("[data-code]")) return;
  if (event.key === "Escape") code.dataset.left = "";
  if (event.key !== "Tab" || event.shiftKey || "left" in code.dataset) return;
  event.preventDefault();
  code.setRangeText("  ", code.selectionStart, code.selectionEnd, "end");
  code.dispatchEvent(new Event("input", { bubbles: true }));
});
document.addEventListener("focusout", (event) => { delete event.target.dataset.left; });

for (const code of document.querySelectorAll('textarea[data-code][name="script"]')) {
  const label = document.createElement("label");
  label.className = "button small";
  label.textContent = "Read it from a file";
  const input = document.createElement("input");
  input.type = "file";
  input.className = "unseen";
  input.accept = ".js,.ts,.mjs,.cjs,.txt";
  input.addEventListener("change", async () => {
    code.value = await input.files[0].text();
    input.value = "";
    code.dispatchEvent(new Event("input", { bubbles: true }));
  });
  label.append(input);
  code.after(label);
  numberLines(code);
}

/** Errors of a script name lines, and so does the page. Lines do not wrap then, each has one number. */
function numberLines(code) {
  const box = document.createElement("div");
  const numbers = document.createElement("ol");
  box.className = "lines";
  numbers.ariaHidden = "true";
  code.wrap = "off";
  code.before(box);
  box.append(numbers, code);
  const follow = () => { numbers.scrollTop = code.scrollTop; };
  const count = () => {
    const wanted = code.value.split("\n").length;
    while (numbers.children.length > wanted) numbers.lastChild.remove();
    while (numbers.children.length < wanted) {
      numbers.append(Object.assign(document.createElement("li"), { textContent: numbers.children.length + 1 }));
    }
    follow();
  };
  code.addEventListener("input", count);
  code.addEventListener("scroll", follow);
  count();
}

// A new form begins with the time zone of whoever fills it in.
for (const zone of document.querySelectorAll('[data-form]:has([name="#once"]) [name="timeZone"]')) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone.value === "UTC" && [...zone.options].some((one) => one.value === own)) zone.value = own;
}

// What stands for a stored secret is replaced as a whole.
document.addEventListener("focusin", (event) => {
  if (event.target.matches("input") && event.target.value === "*********") event.target.select();
});

// A form is sent once, and is not left by accident.
let isChanged = false;
function markChanged(element) {
  if (element.closest("[data-form]")) isChanged = true;
}
document.addEventListener("input", (event) => markChanged(event.target));
document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-form]");
  if (!form) return;
  if (form.dataset.isSent) event.preventDefault();
  form.dataset.isSent = "yes";
  isChanged = false;
});
window.addEventListener("pageshow", () => { for (const form of forms) delete form.dataset.isSent; });
window.addEventListener("beforeunload", (event) => { if (isChanged) event.preventDefault(); });
