// Combobox: a text field that offers what fits what is typed; arrows, Enter and Escape work as people expect.

import { announce, count, el } from "./dom.js";

const WAIT = 90;
let made = 0;

/**
 * Make `input` offer options. `find(text, signal)` returns [{label: nodes, value}], with `total` where there are more;
 * `choose(value)` takes one; `enter(text)` is told of Enter without one, which takes the first else.
 */
export function combobox(input, { find, choose, enter = null, openOnFocus = true }) {
  const id = `options-${(made += 1)}`;
  const list = el("ul", {
    id,
    role: "listbox",
    class: "options",
    "aria-label": input.getAttribute("aria-label") ?? "Matches",
  });
  list.hidden = true;
  const box = el("div", { class: "combobox" });
  input.replaceWith(box);
  box.append(input, list);
  const fixed = {
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-controls": id,
    "aria-expanded": "false",
    autocomplete: "off",
  };
  for (const [name, value] of Object.entries({ ...fixed, spellcheck: "false", autocapitalize: "off" }))
    input.setAttribute(name, value);

  let options = [];
  let active = -1;
  let asking = null;
  let timer = 0;
  let typed = false;

  function close() {
    typed = false;
    asking?.abort();
    clearTimeout(timer);
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(place) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = place;
    const option = list.children[active];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }

  function take(place) {
    const { value } = options[place];
    close();
    choose(value);
  }

  function show() {
    active = -1;
    list.replaceChildren(
      ...options.map((option, place) =>
        el(
          "li",
          {
            id: `${id}-${place}`,
            role: "option",
            "aria-selected": "false",
            class: "option",
            onpointerdown: (event) => event.preventDefault(),
            onclick: () => take(place),
          },
          option.label,
        ),
      ),
    );
    if (!options.length)
      list.append(el("li", { class: "none", role: "option", "aria-disabled": "true" }, "Nothing fits this."));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    input.removeAttribute("aria-activedescendant");
    const of = options.total > options.length ? ` of ${count(options.total)}` : "";
    announce(options.length ? `${count(options.length)}${of} offered` : "nothing fits this");
  }

  async function open() {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    try {
      const found = await find(input.value, signal);
      if (signal.aborted || document.activeElement !== input) return;
      options = found;
      show();
    } catch (error) {
      complain(error);
    }
  }

  function complain(error) {
    if (error.name === "AbortError") return;
    list.replaceChildren(el("li", { class: "none" }, error.message));
    list.hidden = false;
  }

  function move(by) {
    if (list.hidden) open();
    else if (options.length) mark((active + by + options.length + (active < 0 && by < 0 ? 1 : 0)) % options.length);
  }

  async function onEnter() {
    if (active >= 0) return take(active);
    if (enter) {
      close();
      return enter(input.value);
    }
    if (!typed && list.hidden) return open();
    const { value } = input;
    close();
    const [first] = await find(value); // goes on where the focus has left already
    return first ? choose(first.value) : open();
  }

  input.addEventListener("input", () => {
    typed = true;
    clearTimeout(timer);
    timer = setTimeout(open, WAIT);
  });
  input.addEventListener("focus", () => openOnFocus && input.select());
  input.addEventListener("click", () => openOnFocus && list.hidden && open());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const act = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter: onEnter,
      Escape: () => (list.hidden && !enter ? (input.value = "") : close()),
    }[event.key];
    if (!act || event.isComposing) return;
    event.preventDefault();
    if (event.key === "Enter") clearTimeout(timer);
    Promise.resolve(act()).catch(complain);
  });
  return { close };
}
