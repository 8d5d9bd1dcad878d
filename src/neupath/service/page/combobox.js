// Combobox: a text field with autocomplete, used with the arrow keys, Enter and Escape.

import { announce, count, el } from "./dom.js";

const DEBOUNCE = 90;
const ARIA = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false" };
const NO_ASSISTANCE = { autocomplete: "off", spellcheck: "false", autocapitalize: "off" };
let comboboxCount = 0;

/**
 * Add autocomplete to a text field. `find(text, signal)` returns [{label: nodes, value}], with `total` if there are
 * more; `choose(value)` is called with the chosen option. If none is marked, Enter calls `enter(text)`, or without
 * `enter` chooses the first option.
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
    this.request = null;
    this.timer = 0;
    this.typed = false;
    this.id = `options-${(comboboxCount += 1)}`;
    this.list = el("ul", { id: this.id, role: "listbox", class: "options", "aria-label": "Matches", hidden: true });
    const box = el("div", { class: "combobox" });
    input.replaceWith(box);
    box.append(input, this.list);
    const attributes = { ...ARIA, ...NO_ASSISTANCE, "aria-controls": this.id };
    for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
    this.listen();
  }

  listen() {
    const { input, list, actions } = this;
    input.addEventListener("input", () => {
      this.typed = true;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.open(), DEBOUNCE);
    });
    input.addEventListener("focus", () => actions.openOnFocus && input.select());
    input.addEventListener("click", () => actions.openOnFocus && list.hidden && this.open());
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const handlers = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      Enter: () => this.enter(),
      Escape: () => this.escape(),
    };
    if (!handlers[event.key] || event.isComposing) return;
    event.preventDefault();
    Promise.resolve(handlers[event.key]()).catch((error) => this.showError(error));
  }

  async open() {
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    try {
      const options = await this.actions.find(this.input.value, signal);
      if (!signal.aborted && document.activeElement === this.input) this.show(options);
    } catch (error) {
      this.showError(error);
    }
  }

  show(options) {
    this.options = options;
    const rows = options.map((option, index) => this.row(option, index));
    const none = el("li", { class: "none", role: "option", "aria-disabled": "true" }, "No matches.");
    this.list.replaceChildren(...(rows.length ? rows : [none]));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.mark(-1);
    const { length, total } = options;
    const matches = total > length ? `${count(length)} of ${count(total)} matches` : count(length, "match", "matches");
    announce(length ? matches : "no matches");
  }

  row(option, index) {
    const attributes = { id: `${this.id}-${index}`, role: "option", "aria-selected": "false", class: "option" };
    const handlers = { onpointerdown: (event) => event.preventDefault(), onclick: () => this.take(index) };
    return el("li", { ...attributes, ...handlers }, option.label);
  }

  showError(error) {
    if (error.name === "AbortError") return;
    this.list.replaceChildren(el("li", { class: "none" }, error.message));
    this.list.hidden = false;
  }

  close() {
    this.typed = false;
    this.request?.abort();
    clearTimeout(this.timer);
    this.list.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  mark(index) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = index;
    const option = index < 0 ? null : this.list.children[index];
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

  take(index) {
    const { value } = this.options[index];
    this.close();
    this.actions.choose(value);
  }

  async enter() {
    if (this.active >= 0) return this.take(this.active);
    const { value } = this.input;
    if (!this.actions.enter && !this.typed && this.list.hidden) return this.open();
    this.close();
    if (this.actions.enter) return this.actions.enter(value);
    const [first] = await this.actions.find(value); // also if the field has lost the focus by then
    return first ? this.actions.choose(first.value) : this.open();
  }

  escape() {
    if (this.list.hidden && !this.actions.enter) this.input.value = "";
    this.close();
  }
}
