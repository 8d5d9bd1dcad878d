// Builds HTML and SVG elements. Text becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const MAX_LETTERS = 160;
const ANNOUNCE_DELAY = 100;
const pending = [];

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Make an HTML element; attributes such as `onclick` become event listeners. */
export function el(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

/** Return the element of the page with an id. */
export function at(id) {
  return document.getElementById(id);
}

/** Return a text for display: control characters as visible symbols, long texts truncated. */
export function shown(text, most = MAX_LETTERS) {
  const letters = Array.from(String(text).slice(0, 2 * most + 2));
  const cut = letters.length > most ? [...letters.slice(0, most - 1), "…"] : letters;
  return cut.map((letter) => (letter < " " ? String.fromCodePoint(0x2400 + letter.codePointAt(0)) : letter)).join("");
}

/** Return a text for display inside a sentence, with its text direction isolated. */
export function isolated(text, most = MAX_LETTERS) {
  return `\u2068${shown(text, most)}\u2069`;
}

/** Return the label of a node: its name, or else its id. */
export function labelOf(node) {
  return node.name ?? String(node.id);
}

/** Show a node: its name, and its id if that differs. */
export function nodeName(node, most = MAX_LETTERS) {
  const named = node.name !== null && node.name !== undefined && node.name !== String(node.id);
  const label = el("bdi", { class: "name", title: shown(labelOf(node), 400) }, shown(labelOf(node), most));
  return named ? [label, el("bdi", { class: "id" }, shown(node.id, most))] : [label];
}

/** Format a score: four decimals, fewer for large scores, an exponent for tiny ones. */
export function score(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 1 });
  return size < 0.0001 ? value.toExponential(1) : value.toFixed(4);
}

export function percent(share) {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

export function count(number, singular = "", plural = `${singular}s`) {
  const digits = number.toLocaleString("en");
  return singular ? `${digits} ${number === 1 ? singular : plural}` : digits;
}

/** Announce a change to screen readers; announcements within ANNOUNCE_DELAY are joined, so none is lost. */
export function announce(text) {
  if (!pending.length)
    setTimeout(() => {
      at("live").textContent = pending.join(". ");
      pending.length = 0;
    }, ANNOUNCE_DELAY);
  if (!pending.includes(text)) pending.push(text);
}

/**
 * Replace the children of an element. If one of them had the focus, the focus moves to the new element with the same
 * key, else to the one at the same index, else to `fallback`.
 */
export function refill(parent, children, fallback = null) {
  const focusable = () => [...parent.querySelectorAll("button, [tabindex], input, select")];
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const [index, key] = focused ? [focusable().indexOf(focused), focused.dataset.key] : [];
  parent.replaceChildren(...children);
  if (!focused) return;
  const now = focusable();
  const next = (key && now.find((one) => one.dataset.key === key)) || now[Math.min(index, now.length - 1)] || fallback;
  next?.focus();
}

/** Show an error in place of the result, with a button if it can be retried. */
export function problem(error, retry = null) {
  const again = retry && el("button", { type: "button", onclick: retry }, "Try again");
  return el("div", { class: "problem", role: "alert" }, el("p", {}, error.message), again);
}

/** Whether two values have the same JSON. */
export function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Save a blob as a file. */
export function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
