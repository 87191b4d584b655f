// The table of guidelines and the editor beside it. Without this the page works too: each step is then a page of its own.

const editor = () => document.getElementById("editor");
const unsaved = () => document.querySelector("[data-editor][data-dirty]");

// Which row is open in the editor; the table and the editor are swapped apart from each other.
function mark() {
  const open = editor()?.dataset.uid ?? "";
  for (const row of document.querySelectorAll("#guidelines tr[data-uid]")) {
    row.toggleAttribute("aria-current", row.dataset.uid === open);
    if (row.dataset.uid === open) row.setAttribute("aria-current", "true");
  }
  for (const input of document.querySelectorAll("#guidelines [name=open]")) input.value = open;
}

function tickAll() {
  for (const all of document.querySelectorAll("[data-tick-all]")) {
    all.hidden = false;
    all.onchange = () => all.form.querySelectorAll("[name=uid]").forEach((box) => { box.checked = all.checked; });
  }
}

document.addEventListener("htmx:load", () => { mark(); tickAll(); });

document.addEventListener("input", ({ target }) => {
  target.closest("[data-editor]")?.setAttribute("data-dirty", "");
});

// What was written and not saved is never thrown away without a question.
document.addEventListener("htmx:confirm", (event) => {
  const { elt, target, verb } = event.detail;
  if (verb !== "get" || target?.id !== "editor" || !unsaved() || elt.hasAttribute("data-discard")) return;
  if (!confirm(document.querySelector("[data-unsaved]").dataset.unsaved)) event.preventDefault();
});
addEventListener("beforeunload", (event) => {
  if (unsaved() && !unsaved().dataset.sending) event.preventDefault();
});
document.addEventListener("submit", ({ target }) => {
  if (target.matches("[data-editor]")) target.dataset.sending = "yes";
});

// Closing gives the focus back to the row that was open.
document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
  if (target.id === "editor") target.ownerDocument.body.dataset.opened = target.dataset.uid ?? "";
});
document.addEventListener("htmx:afterSettle", ({ detail: { target } }) => {
  if (target.id !== "editor" || !editor()?.hidden) return;
  (document.getElementById(`open-${document.body.dataset.opened}`) ?? document.getElementById("new-guideline"))?.focus();
});
