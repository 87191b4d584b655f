// Light, dark, or as the system says: shown at once, and kept by the form that the choice belongs to.

document.addEventListener("click", (event) => {
  const choice = event.target.closest("[data-theme-choice]");
  if (!choice) return;
  document.documentElement.dataset.theme = choice.value;
  for (const other of document.querySelectorAll("[data-theme-choice]")) {
    other.setAttribute("aria-pressed", String(other.value === choice.value));
  }
});
