// Keys for those who keep their hands on the keyboard. `?` lists them, and there they are switched off.

const root = document.documentElement;
const writing = (at) => at.isContentEditable || at.matches("input:not([type=checkbox], [type=radio]), textarea, select");

// j and k go through the rows of the list: to each row's first link, where Enter opens it.
function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const here = rows.indexOf(document.activeElement.closest("[data-row]"));
  const there = here < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + step, 0), rows.length - 1);
  const target = rows[there].querySelector("[data-row-link]") ?? rows[there].querySelector("a, button");
  target?.focus();
  rows[there].scrollIntoView({ block: "nearest" });
}

// d and D go through what differs: on this page, then on the one that a link names.
function differ(step, link) {
  const all = [...document.querySelectorAll("[data-difference]")];
  const there = all.indexOf(document.activeElement.closest("[data-difference]")) + step;
  const target = all[there === -2 ? all.length - 1 : there];
  if (target) target.focus();
  else document.querySelector(link)?.click();
}

const actions = {
  "?": () => document.getElementById("keys-help")?.togglePopover(),
  "/": () => document.querySelector("[data-filter], input[type=search]")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  d: () => differ(1, "[data-next-difference]"),
  D: () => differ(-1, "[data-previous-difference]"),
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    // Open popovers close by themselves; a panel beside a list has a link that closes it.
    if (!document.querySelector(":popover-open")) document.querySelector("[data-panel] [data-close]")?.click();
    return;
  }
  if (root.dataset.keys === "off" || writing(event.target)) return;
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-keys-choice]")) root.dataset.keys = event.target.checked ? "on" : "off";
});
