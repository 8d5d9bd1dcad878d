// Elements: HTML and SVG made from values. Text only ever becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const MOST_LETTERS = 160;
const BREATH = 100;
const unsaid = [];

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Make an HTML element; `onclick` and the like are listeners. */
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

/** Return a text as a person can see it: control characters as their pictures, the rest of a long one left out. */
export function shown(text, most = MOST_LETTERS) {
  const letters = Array.from(String(text).slice(0, 2 * most + 2));
  const cut = letters.length > most ? [...letters.slice(0, most - 1), "…"] : letters;
  return cut.map((letter) => (letter < " " ? String.fromCodePoint(0x2400 + letter.codePointAt(0)) : letter)).join("");
}

/** Return a text that stands in a sentence without turning its direction. */
export function isolated(text, most = MOST_LETTERS) {
  return `\u2068${shown(text, most)}\u2069`;
}

/** Return the word for a node: its name, or its id. */
export function labelOf(node) {
  return node.name ?? String(node.id);
}

/** Show a node: its name, and its id where that is another word. */
export function nodeName(node, most = MOST_LETTERS) {
  const named = node.name !== null && node.name !== undefined && node.name !== String(node.id);
  const label = el("bdi", { class: "name", title: shown(labelOf(node), 400) }, shown(labelOf(node), most));
  return named ? [label, el("bdi", { class: "id" }, shown(node.id, most))] : [label];
}

/** Write a score with as many digits as tell it apart. */
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

/** Tell screen readers what changed; what is said in one breath is said together, none over another. */
export function announce(text) {
  if (!unsaid.length)
    setTimeout(() => {
      at("live").textContent = unsaid.join(". ");
      unsaid.length = 0;
    }, BREATH);
  if (!unsaid.includes(text)) unsaid.push(text);
}

/**
 * Put elements where others were. Who had the focus there keeps it: on the one with the same key, else on the one in
 * the same place, else on `otherwise`.
 */
export function refill(place, children, otherwise = null) {
  const places = () => [...place.querySelectorAll("button, [tabindex], input, select")];
  const held = place.contains(document.activeElement) ? document.activeElement : null;
  const [index, key] = held ? [places().indexOf(held), held.dataset.key] : [];
  place.replaceChildren(...children);
  if (!held) return;
  const now = places();
  const next = (key && now.find((one) => one.dataset.key === key)) || now[Math.min(index, now.length - 1)] || otherwise;
  next?.focus();
}

/** Show an error where its result would have stood. */
export function problem(error, retry = null) {
  const again = retry && el("button", { type: "button", onclick: retry }, "Try again");
  return el("div", { class: "problem", role: "alert" }, el("p", {}, error.message), again);
}

/** Whether two values are the same as JSON. */
export function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Hand a file to the person at the browser. */
export function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
