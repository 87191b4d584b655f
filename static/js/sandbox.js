// The sandbox alive: what the stream brings takes its place in the page, by id, so that nothing is lost or doubled.

const $ = (id) => document.getElementById(id);
const main = $("sandbox");
const log = $("log");
const text = $("text");

// --- the chat keeps to its end, unless the reader scrolled up
const toEnd = () => { log.scrollTop = log.scrollHeight; };

function keepingEnd(change) {
  const follow = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  change();
  if (follow) toEnd();
}

// --- elements take their place
// Brings `old` to what `fresh` says; in keyed elements, children that did not change stay as they are.
function sync(old, fresh) {
  // Answers may overtake the stream: what was drawn earlier never replaces what was drawn later.
  if (Number(fresh.dataset.asOf) < Number(old.dataset.asOf)) return;
  if (!("keyed" in fresh.dataset)) {
    const focused = old.contains(document.activeElement);
    old.replaceWith(fresh);
    htmx.process(fresh);
    if (focused) fresh.querySelector("button")?.focus();
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) old.setAttribute(name, value);
  const children = [...fresh.children].map((child) => {
    const there = $(child.id);
    return there?.parentElement === old && there.isEqualNode(child) ? there : child;
  });
  if (children.length !== old.children.length || children.some((child) => child.parentElement !== old)) {
    old.replaceChildren(...children);
  }
  htmx.process(old);
}

function place(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  keepingEnd(() => {
    for (const fresh of [...box.content.children]) {
      if ($(fresh.id)) sync($(fresh.id), fresh);
      else if (fresh.dataset.offset) insert(fresh);
    }
  });
  settle();
}

function insert(fresh) {
  const offset = Number(fresh.dataset.offset);
  const items = [...log.querySelectorAll(":scope > [data-offset]")];
  // What stands before the oldest turn shown belongs to the earlier ones.
  if ($("earlier") && items.length && offset < Number(items[0].dataset.offset)) return;
  log.insertBefore(fresh, items.find((item) => Number(item.dataset.offset) > offset) ?? null);
  htmx.process(fresh);
}

function settle() {
  const turns = log.querySelectorAll("[data-turn]");
  if (log.querySelector("[data-offset]")) $("hello")?.remove();
  log.setAttribute("aria-busy", String(Boolean(log.querySelector(".writing"))));
  if (text) text.placeholder = $("speaker").dataset.says;
  for (const turn of turns) turn.classList.toggle("on", turn.dataset.turn === chosen && turns.length > 1);
}

// The next pieces of a message being written, each as [offset, text, does it begin anew].
function write({ turn, pieces }) {
  const section = $(`turn-${turn}`);
  const fresh = pieces.filter(([offset]) => offset > Number(section?.dataset.through));
  if (!fresh.length) return;
  keepingEnd(() => {
    if (!$(`writing-${turn}`)) {
      section.append($("writing-bubble").content.cloneNode(true));
      section.lastElementChild.id = `writing-${turn}`;
    }
    const words = $(`writing-${turn}`).querySelector(".text");
    for (const [offset, piece, restart] of fresh) {
      if (restart) words.textContent = "";
      words.append(piece);
      section.dataset.through = offset;
    }
  });
  log.setAttribute("aria-busy", "true");
}

// --- the ledger follows the last turn, or shows the chosen one
let chosen = $("ledger").dataset.turn;
let drawing = false;
let drawAgain = false;
const lastTurn = () => [...log.querySelectorAll("[data-turn]")].at(-1)?.dataset.turn;

function refresh(turns) {
  const follow = "following" in main.dataset && lastTurn() && lastTurn() !== chosen;
  if (follow) chosen = lastTurn();
  if (follow || turns.map(String).includes(chosen)) draw();
}

// The tab that is open stays open for the next turn.
const tab = (before) => ($("ledger").dataset.tab ? `${before}show=${$("ledger").dataset.tab}` : "");
document.body.addEventListener("htmx:configRequest", ({ detail }) => {
  if ("choose" in detail.elt.dataset) detail.path += tab("&");
});

// One at a time, and once more for what changed meanwhile.
async function draw() {
  drawAgain = drawing;
  if (drawing) return;
  drawing = true;
  const url = `${location.pathname}?turn=${chosen}${tab("&")}`;
  const lost = await htmx.ajax("GET", url, { target: "#ledger", swap: "outerHTML" }).catch(() => true);
  drawing = false;
  if (lost) setTimeout(draw, 1000); // the connection is gone: what it should show is still to come
  else if (drawAgain) draw();
}

// What was unfolded stays so when the ledger is drawn again; what was in sight stays there.
let unfolded = [];
let fromEnd = 0;
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  if (target.id === "earlier") fromEnd = log.scrollHeight - log.scrollTop;
  if (target.id !== "ledger") return;
  // An answer that comes after another turn was chosen is too late.
  if (new URL(xhr.responseURL).searchParams.get("turn") !== chosen) event.detail.shouldSwap = false;
  const open = target.dataset.turn === chosen ? target.querySelectorAll("details[open][id]") : [];
  unfolded = [...open].map((details) => details.id);
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  // Earlier turns push what is being read down: it stays where it was.
  if (event.detail.target.id === "earlier") log.scrollTop = log.scrollHeight - fromEnd;
  if (event.detail.target.id !== "ledger") return;
  for (const id of unfolded) $(id)?.setAttribute("open", "");
  settle();
});

// On narrow screens one pane is shown at a time.
function pane(name) {
  main.dataset.pane = name;
  for (const tab of document.querySelectorAll("[data-show]")) {
    tab.setAttribute("aria-current", String(tab.dataset.show === name));
  }
  if (name === "chat" && "following" in main.dataset) toEnd();
}

document.addEventListener("click", (event) => {
  const choice = event.target.closest("[data-choose]");
  if (choice) {
    chosen = choice.dataset.choose;
    main.toggleAttribute("data-following", chosen === lastTurn());
    pane("audit");
  }
  if (event.target.closest("[data-lights]")) pane("chat");
  const tab = event.target.closest("[data-show]");
  if (tab) pane(tab.dataset.show);
  // A click on a message chooses its turn, unless words of it are being selected.
  const message = event.target.closest(".log .msg");
  if (message && !event.target.closest("a, button") && getSelection().isCollapsed) {
    message.closest("[data-turn]")?.querySelector("[data-choose]")?.click();
  }
});

// --- sending, stopping, trying again
text?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    text.form.requestSubmit();
  } else if (event.key === "Escape") $("stop")?.click();
});
text?.addEventListener("input", () => refuse(""));

function refuse(words) {
  $("refused").textContent = words;
  $("refused").hidden = !words;
}

let sent = "";
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt === text?.form) sent = text.value;
});
document.body.addEventListener("htmx:beforeSwap", (event) => {
  const { requestConfig, xhr } = event.detail;
  if (!("place" in requestConfig.elt.dataset) || xhr.status >= 400) return;
  event.detail.shouldSwap = false;
  // Whoever is signed out gets another page instead, and their words stay (page.js tells them).
  if (new URL(xhr.responseURL).pathname !== requestConfig.path) return;
  refuse("");
  if (requestConfig.elt === text.form) {
    if (text.value.startsWith(sent)) text.value = text.value.slice(sent.length); // words typed meanwhile stay
    main.setAttribute("data-following", "");
    history.replaceState(history.state, "", location.pathname);
    toEnd();
  }
  place(xhr.responseText);
  // A button that is gone takes the focus with it: reading goes on where it stood.
  if (document.activeElement === document.body) log.focus({ preventScroll: true });
  refresh([]);
});

// --- the stream
let source = null;
let through = main.dataset.after;
let wait = 1000;

function open() {
  source?.close();
  source = new EventSource(`${main.dataset.stream}?after=${through}`);
  source.addEventListener("open", () => { $("connection").hidden = true; wait = 1000; });
  source.addEventListener("changed", ({ data }) => {
    const { turns, html } = JSON.parse(data);
    place(html);
    refresh(turns);
  });
  source.addEventListener("pieces", ({ data }) => write(JSON.parse(data)));
  source.addEventListener("through", ({ lastEventId }) => { through = lastEventId; });
  source.addEventListener("error", () => {
    $("connection").hidden = false;
    // The browser tries again by itself after a break, but not after a refusal.
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => { if (!document.hidden) open(); }, wait);
    wait = Math.min(wait * 2, 30000);
  });
}

// Browsers allow few connections to one host: a page that nobody sees gives its own back, and catches up later.
document.addEventListener("visibilitychange", () => (document.hidden ? source?.close() : open()));
if (!document.hidden) open();

settle();
if (location.hash.startsWith("#event-")) $(location.hash.slice(1))?.scrollIntoView();
else if ("following" in main.dataset) toEnd();
else log.querySelector(".turn.on")?.scrollIntoView({ block: "center" });
