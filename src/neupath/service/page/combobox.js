// Combobox: a text field that offers what fits what is typed; arrows, Enter and Escape work as people expect.

import { announce, count, el } from "./dom.js";

const WAIT = 90;
const ROLE = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false" };
const PLAIN = { autocomplete: "off", spellcheck: "false", autocapitalize: "off" };
let made = 0;

/**
 * Make a text field offer options. `find(text, signal)` returns [{label: nodes, value}], with `total` where there are
 * more; `choose(value)` takes one; `enter(text)` is told of Enter without one, which takes the first else.
 */
export function combobox(input, actions) {
  return new Combobox(input, { enter: null, openOnFocus: true, ...actions });
}

class Combobox {
  constructor(input, actions) {
    this.input = input;
    this.actions = actions;
    this.options = [];
    this.active = -1;
    this.asking = null;
    this.timer = 0;
    this.typed = false;
    this.id = `options-${(made += 1)}`;
    this.list = el("ul", { id: this.id, role: "listbox", class: "options", "aria-label": "Matches", hidden: true });
    const box = el("div", { class: "combobox" });
    input.replaceWith(box);
    box.append(input, this.list);
    const attributes = { ...ROLE, ...PLAIN, "aria-controls": this.id };
    for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
    this.listen();
  }

  listen() {
    const { input, list, actions } = this;
    input.addEventListener("input", () => {
      this.typed = true;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.open(), WAIT);
    });
    input.addEventListener("focus", () => actions.openOnFocus && input.select());
    input.addEventListener("click", () => actions.openOnFocus && list.hidden && this.open());
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const acts = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      Enter: () => this.enter(),
      Escape: () => this.escape(),
    };
    if (!acts[event.key] || event.isComposing) return;
    event.preventDefault();
    Promise.resolve(acts[event.key]()).catch((error) => this.complain(error));
  }

  async open() {
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const found = await this.actions.find(this.input.value, signal);
      if (!signal.aborted && document.activeElement === this.input) this.show(found);
    } catch (error) {
      this.complain(error);
    }
  }

  show(options) {
    this.options = options;
    const rows = options.map((option, place) => this.row(option, place));
    const none = el("li", { class: "none", role: "option", "aria-disabled": "true" }, "Nothing fits this.");
    this.list.replaceChildren(...(rows.length ? rows : [none]));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.mark(-1);
    const of = options.total > options.length ? ` of ${count(options.total)}` : "";
    announce(options.length ? `${count(options.length)}${of} offered` : "nothing fits this");
  }

  row(option, place) {
    const attributes = { id: `${this.id}-${place}`, role: "option", "aria-selected": "false", class: "option" };
    const acts = { onpointerdown: (event) => event.preventDefault(), onclick: () => this.take(place) };
    return el("li", { ...attributes, ...acts }, option.label);
  }

  complain(error) {
    if (error.name === "AbortError") return;
    this.list.replaceChildren(el("li", { class: "none" }, error.message));
    this.list.hidden = false;
  }

  close() {
    this.typed = false;
    this.asking?.abort();
    clearTimeout(this.timer);
    this.list.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  mark(place) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = place;
    const option = place < 0 ? null : this.list.children[place];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  move(by) {
    const { length } = this.options;
    if (this.list.hidden) return this.open();
    if (length) this.mark(this.active < 0 && by < 0 ? length - 1 : (this.active + by + length) % length);
    return undefined;
  }

  take(place) {
    const { value } = this.options[place];
    this.close();
    this.actions.choose(value);
  }

  async enter() {
    if (this.active >= 0) return this.take(this.active);
    const { value } = this.input;
    if (!this.actions.enter && !this.typed && this.list.hidden) return this.open();
    this.close();
    if (this.actions.enter) return this.actions.enter(value);
    const [first] = await this.actions.find(value); // goes on where the focus has left already
    return first ? this.actions.choose(first.value) : this.open();
  }

  escape() {
    if (this.list.hidden && !this.actions.enter) this.input.value = "";
    this.close();
  }
}
