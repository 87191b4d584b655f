// The sandbox alive: what the stream brings takes its place in the page, by id, so that nothing is lost or doubled.

const main = document.getElementById("sandbox");
const log = document.getElementById("log");
const composer = document.getElementById("composer");
const text = document.getElementById("text");
const connection = document.getElementById("connection");
const bubble = document.getElementById("writing-bubble");

// --- the chat keeps to its end, unless the reader scrolled up

const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60;
const toEnd = () => { log.scrollTop = log.scrollHeight; };

function keepingEnd(change) {
  const follow = atEnd();
  change();
  if (follow) toEnd();
}

// --- elements take their place

// Brings `old` to what `fresh` says; in keyed elements, children that did not change stay as they are.
function sync(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (!("keyed" in fresh.dataset)) {
    old.replaceWith(fresh);
    htmx.process(fresh);
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) old.setAttribute(name, value);
  const known = new Map([...old.children].map((child) => [child.id, child]));
  const children = [...fresh.children].map((child) => {
    const there = known.get(child.id);
    return there?.isEqualNode(child) ? there : child;
  });
  const same = children.length === old.children.length && children.every((child, n) => child === old.children[n]);
  if (!same) old.replaceChildren(...children);
  htmx.process(old);
}

function place(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  keepingEnd(() => {
    for (const fresh of [...box.content.children]) {
      const old = document.getElementById(fresh.id);
      if (old) sync(old, fresh);
      else if (fresh.dataset.offset) insert(fresh);
    }
  });
  settle();
}

function insert(fresh) {
  const offset = Number(fresh.dataset.offset);
  const items = [...log.querySelectorAll(":scope > [data-offset]")];
  // What stands before the oldest turn shown belongs to the earlier ones.
  if (document.getElementById("earlier") && items.length && offset < Number(items[0].dataset.offset)) return;
  const next = items.find((item) => Number(item.dataset.offset) > offset);
  log.insertBefore(fresh, next ?? null);
  htmx.process(fresh);
}

function settle() {
  const turns = log.querySelectorAll("[data-turn]");
  if (turns.length) document.getElementById("hello")?.remove();
  log.setAttribute("aria-busy", String(Boolean(log.querySelector(".writing"))));
  for (const turn of turns) turn.classList.toggle("on", turn.dataset.turn === chosen && turns.length > 1);
}

// The next pieces of a message being written, each as [offset, text, does it begin anew].
function write({ turn, pieces }) {
  const section = document.getElementById(`turn-${turn}`);
  if (!section) return;
  const fresh = pieces.filter(([offset]) => offset > Number(section.dataset.through));
  if (!fresh.length) return;
  keepingEnd(() => {
    let writing = document.getElementById(`writing-${turn}`);
    if (!writing) {
      section.append(bubble.content.cloneNode(true));
      writing = section.lastElementChild;
      writing.id = `writing-${turn}`;
    }
    const words = writing.querySelector(".text");
    for (const [offset, piece, restart] of fresh) {
      if (restart) words.textContent = "";
      words.append(piece);
      section.dataset.through = offset;
    }
  });
  log.setAttribute("aria-busy", "true");
}

// --- the ledger follows the last turn, or shows the chosen one

let chosen = document.getElementById("ledger").dataset.turn;
let drawing = false;
let drawAgain = false;
const lastTurn = () => log.querySelector("[data-turn]:last-of-type")?.dataset.turn;

function refresh(turns) {
  const follow = "following" in main.dataset && lastTurn() && lastTurn() !== chosen;
  if (follow) chosen = lastTurn();
  if (follow || turns.map(String).includes(chosen)) draw();
}

// One at a time, and once more for what changed meanwhile.
async function draw() {
  drawAgain = drawing;
  if (drawing) return;
  drawing = true;
  try {
    await htmx.ajax("GET", `${location.pathname}?turn=${chosen}`, { target: "#ledger", swap: "outerHTML" });
  } finally {
    drawing = false;
  }
  if (drawAgain) draw();
}

// What was unfolded stays so when the ledger is drawn again.
let unfolded = [];
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id !== "ledger") return;
  // An answer that comes after another turn was chosen is too late.
  const turn = new URL(event.detail.xhr.responseURL).searchParams.get("turn");
  if (turn !== chosen) event.detail.shouldSwap = false;
  unfolded = [event.detail.target.dataset.turn, ...[...document.querySelectorAll("#ledger details[open][id]")].map((it) => it.id)];
});
document.body.addEventListener("htmx:afterSettle", (event) => {
  const ledger = document.getElementById("ledger");
  if (event.detail.elt !== ledger && event.detail.target?.id !== "ledger") return;
  if (unfolded[0] === ledger.dataset.turn) {
    for (const id of unfolded.slice(1)) document.getElementById(id)?.setAttribute("open", "");
  }
  settle();
});

document.addEventListener("click", (event) => {
  const choice = event.target.closest("[data-choose]");
  if (choice) {
    chosen = choice.dataset.choose;
    main.toggleAttribute("data-following", chosen === lastTurn());
    pane("audit");
  }
  if (event.target.closest("[data-lights]")) pane("chat");
  const tab = event.target.closest("[data-show]");
  if (tab) {
    event.preventDefault();
    pane(tab.dataset.show);
  }
  // A click on a message chooses its turn, unless words of it are being selected.
  const message = event.target.closest(".log .msg");
  if (message && !event.target.closest("a, button") && getSelection().isCollapsed) {
    message.closest("[data-turn]")?.querySelector("[data-choose]")?.click();
  }
});

// On narrow screens one pane is shown at a time.
function pane(name) {
  main.dataset.pane = name;
  for (const tab of document.querySelectorAll("[data-show]")) {
    if (tab.dataset.show === name) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
  if (name === "chat" && "following" in main.dataset) toEnd();
}

// --- sending

text?.addEventListener("input", () => refuse(""));
text?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    composer.requestSubmit();
  } else if (event.key === "Escape") document.querySelector("[data-stop]")?.click();
});

function refuse(words) {
  const refused = document.getElementById("refused");
  refused.textContent = words;
  refused.hidden = !words;
}

for (const name of ["htmx:sendError", "htmx:responseError"]) {
  document.body.addEventListener(name, (event) => {
    if ("place" in event.detail.elt.dataset && event.detail.xhr.status !== 422) refuse(main.dataset.unsent);
  });
}

let sent = "";
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt === composer) sent = text.value;
});
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const { requestConfig, xhr } = event.detail;
  if (!("place" in (requestConfig?.elt.dataset ?? {}))) return;
  if (xhr.status === 422) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
    return;
  }
  event.detail.shouldSwap = false;
  if (xhr.status >= 400) return;
  // Whoever is signed out is sent to another page, and their words stay.
  if (new URL(xhr.responseURL).pathname !== new URL(requestConfig.path, location).pathname) {
    refuse(main.dataset.signedOut);
    return;
  }
  refuse("");
  if (requestConfig.elt === composer) {
    // Words typed since it was sent stay.
    text.value = text.value.startsWith(sent) ? text.value.slice(sent.length) : text.value;
    main.setAttribute("data-following", "");
    history.replaceState(history.state, "", location.pathname);
    toEnd();
  }
  place(xhr.responseText);
  refresh([]);
});

// --- the stream

let source = null;
let through = main.dataset.after;
let wait = 1000;

function open() {
  close();
  source = new EventSource(`${main.dataset.stream}?after=${through}`);
  source.addEventListener("open", () => { connection.hidden = true; wait = 1000; });
  source.addEventListener("changed", (event) => {
    const { turns, html } = JSON.parse(event.data);
    place(html);
    refresh(turns);
  });
  source.addEventListener("pieces", (event) => write(JSON.parse(event.data)));
  source.addEventListener("through", (event) => { through = event.lastEventId; });
  source.addEventListener("error", () => {
    connection.hidden = false;
    // The browser tries again by itself after a break, but not after a refusal.
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => { if (!document.hidden) open(); }, wait);
    wait = Math.min(wait * 2, 30000);
  });
}

function close() {
  source?.close();
  source = null;
}

// Browsers allow few connections to one host: a page that nobody sees gives its own back, and catches up later.
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
if (!document.hidden) open();

settle();
if (location.hash.startsWith("#event-")) document.querySelector(location.hash)?.scrollIntoView();
else if ("following" in main.dataset) toEnd();
else log.querySelector(".turn.on")?.scrollIntoView({ block: "center" });
