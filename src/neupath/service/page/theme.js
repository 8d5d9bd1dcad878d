// Light or dark theme: the system setting, unless the user has chosen one.

import { announce, at } from "./dom.js";

const KEY = "neupath.theme";

function isDark() {
  const chosen = localStorage.getItem(KEY);
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function show() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  at("theme").setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  at("theme").title = at("theme").getAttribute("aria-label");
}

export function setUpTheme() {
  show();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  at("theme").addEventListener("click", () => {
    localStorage.setItem(KEY, isDark() ? "light" : "dark");
    show();
    announce(isDark() ? "dark colours" : "light colours");
  });
}
