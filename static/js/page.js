// What every page does with htmx: focus goes to what was opened, and a request that failed says so where it is read.

const root = document.documentElement;
const alert = document.getElementById("alert");

function say(words, link) {
  alert.hidden = !words;
  alert.querySelector("p").textContent = words;
  alert.querySelector("a").hidden = !link;
}

// New content names what deserves the focus: the heading of a panel, a list of errors.
document.addEventListener("htmx:load", ({ detail: { elt } }) => {
  const target = elt.matches("[data-focus]") ? elt : elt.querySelector("[data-focus]");
  if (!target) return;
  if (target.tabIndex < 0) target.tabIndex = -1;
  target.focus();
});

// Of the tabs, the current one is in sight.
document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Times are in the viewer's zone.
document.addEventListener("htmx:load", ({ detail: { elt } }) => {
  for (const time of elt.querySelectorAll("time[datetime]")) {
    time.title = new Date(time.dateTime).toLocaleString(root.lang, { dateStyle: "medium", timeStyle: "short" });
    if ("local" in time.dataset) time.textContent = time.title;
  }
});

document.addEventListener("htmx:beforeRequest", () => say(""));

// Whoever was signed out meanwhile keeps what they wrote: the answer is the sign-in page, and it is not put in its place.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { pathname } = new URL(detail.xhr.responseURL, location);
  if (pathname !== alert.dataset.signIn || location.pathname === pathname) return;
  detail.shouldSwap = false;
  say(alert.dataset.signedOut, true);
});

document.addEventListener("htmx:responseError", ({ detail: { xhr } }) => {
  const renewed = xhr.status === 403 && renew(xhr.responseText);
  const said = { 403: alert.dataset.forbidden, 404: alert.dataset.gone, 429: alert.dataset.slower };
  say(renewed ? alert.dataset.again : said[xhr.status] ?? alert.dataset.failed);
});
document.addEventListener("htmx:sendError", () => say(alert.dataset.offline));
document.addEventListener("htmx:timeout", () => say(alert.dataset.offline));

// Signing in again, in another tab, changes the token that forms carry; the refusal brings the new one.
function renew(html) {
  const token = new DOMParser().parseFromString(html, "text/html").querySelector("[data-renewed-token]")?.dataset.renewedToken;
  if (!token) return false;
  document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": token }));
  for (const input of document.querySelectorAll("input[name=csrfmiddlewaretoken]")) input.value = token;
  return true;
}

// Copying is a help; without it the text can be selected.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
  button.textContent = button.dataset.copied;
});
