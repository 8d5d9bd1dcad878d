// How the page writes nodes, numbers and meta-paths. Text from a graph becomes a text node or an attribute, never markup.

import { Component } from "preact";
import { modelTitle } from "./graphs.js";

const MAX_LETTERS = 160;
const ANNOUNCE_DELAY = 100;
const pending = [];

/** Return a text for display: control characters as visible symbols, long texts truncated. */
export function shown(text, most = MAX_LETTERS) {
  const letters = Array.from(String(text).slice(0, 2 * most + 2));
  const cut = letters.length > most ? [...letters.slice(0, most - 1), "…"] : letters;
  return cut.map((letter) => (letter < " " ? String.fromCodePoint(0x2400 + letter.codePointAt(0)) : letter)).join("");
}

/** Return a text for display inside a sentence, with its text direction isolated. */
export const isolated = (text, most = MAX_LETTERS) => `\u2068${shown(text, most)}\u2069`;

/** Return the label of a node: its name, or else its id. */
export const labelOf = (node) => node.name || String(node.id);

export const isNamed = (node) => Boolean(node.name) && node.name !== String(node.id);

/** Format a score: four decimals, fewer for large scores, an exponent for tiny ones. */
export function score(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 1 });
  return size < 0.0001 ? value.toExponential(1) : value.toFixed(4);
}

/** Format what is added to a score, with its sign. */
export const signed = (value) => `${value < 0 ? "−" : "+"}${score(Math.abs(value))}`;

export function percent(share) {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

export function count(number, singular = "", plural = pluralOf(singular)) {
  const digits = number.toLocaleString("en");
  return singular ? `${digits} ${number === 1 ? singular : plural}` : digits;
}

export function pluralOf(word) {
  if (/[^aeiou]y$/i.test(word)) return `${word.slice(0, -1)}ies`;
  return /(s|x|z|ch|sh)$/i.test(word) ? `${word}es` : `${word}s`;
}

export const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

export const article = (word) => (/^[aeiou]/i.test(word) ? "an" : "a");

/** Describe a meta-path in a few words: shared methods, conferences of their papers. */
export function metapathWords(metapath, types) {
  const middle = (types.length - 1) / 2;
  const isRoundTrip = types.length % 2 === 1 && types.every((type, place) => type === types.at(-1 - place));
  const relations = [...metapath.slice(0, metapath.length / 2 + 1).matchAll(/<?-([^-<>]+)->|<-([^-<>]+)-/g)].map(
    (match) => (match[0].startsWith("<") ? `← ${match[2] ?? match[1]}` : `${match[1]} →`),
  );
  const conditions = [...new Set(metapath.match(/\[[^\]]*\]/g) ?? [])].join(" ");
  const details = [relations.length ? `(${shown(relations.join(", "), 60)})` : "", conditions]
    .filter(Boolean)
    .join(" ");
  const tail = details && ` ${details}`;
  const plurals = types.map((type) => pluralOf(shown(type, 30)));
  if (isRoundTrip && middle === 1) return `shared ${plurals[1]}${tail}`;
  if (isRoundTrip && middle === 2) return `${plurals[2]} of their ${plurals[1]}${tail}`;
  if (isRoundTrip && middle > 2) return `${plurals[middle]} by way of ${plurals.slice(1, middle).join(" and ")}${tail}`;
  return shown(metapath, 80);
}

/** Describe a meaning in a few words. */
export function meaningWords(meaning, types = null) {
  if (!meaning) return "";
  if (meaning.mix) return "your examples";
  if (meaning.model) return `the model ${shown(modelTitle(meaning.model), 60)}`;
  if (meaning.whole) return `${meaning.measure} over the whole graph`;
  return types?.length ? metapathWords(meaning.metapath, types) : shown(meaning.metapath, 80);
}

/** Say that several nodes have a name, and their ids, the best connected first. */
export function homonymWords(name, nodes, type) {
  const ids = nodes.slice(0, 6).map((node) => `${shown(node.id, 40)} (${count(node.degree, "edge")})`);
  const others = nodes.length > ids.length ? ` and ${count(nodes.length - ids.length)} more` : "";
  const what = count(nodes.length, shown(type, 30));
  return `${what} are called “${shown(name, 60)}”: ${ids.join(", ")}${others}. Write the id of one.`;
}

/** Announce a change to screen readers; announcements within ANNOUNCE_DELAY are joined, so none is lost. */
export function announce(text) {
  if (!pending.length)
    setTimeout(() => {
      document.getElementById("live").textContent = pending.join(". ");
      pending.length = 0;
    }, ANNOUNCE_DELAY);
  if (!pending.includes(text)) pending.push(text);
}

/** Save a blob as a file. */
export function download(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: address, download: name.replace(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// ---- Small parts ----------------------------------------------------------------------------------
/** The name of a node, and its id where that differs and `withId`. */
export function NodeName({ node, most = MAX_LETTERS, withId = true }) {
  return (
    <>
      <bdi class="name" title={shown(labelOf(node), 400)}>
        {shown(labelOf(node), most)}
      </bdi>
      {withId && isNamed(node) && <bdi class="id">{shown(node.id, most)}</bdi>}
    </>
  );
}

/** A node type in its colour. */
export function TypeChip({ type, types }) {
  const place = types.indexOf(type);
  return <span class={`type t${(place < 0 ? 0 : place) % 8}`}>{shown(type, 40)}</span>;
}

export function Bar({ share, title }) {
  return (
    <span class="bar" aria-hidden="true" title={title}>
      <span style={{ width: `${Math.max(0, Math.min(100, 100 * share))}%` }} />
    </span>
  );
}

/** A bar that goes right from its middle for what raises a score, and left for what lowers it. */
export function SignedBar({ share }) {
  const width = 50 * Math.min(1, Math.abs(share));
  return (
    <span class={`bar signed ${share < 0 ? "below" : ""}`} aria-hidden="true">
      <span style={{ width: `${width}%`, marginInlineStart: `${share < 0 ? 50 - width : 50}%` }} />
    </span>
  );
}

/** An error in place of the result, with a button if it can be retried. */
export function Problem({ error, retry = null, children }) {
  return (
    <div class="problem" role="alert">
      <p>{shown(error.message, 1200)}</p>
      {children}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A part of the page that fails alone: the others go on, and it is tried again when `about` changes. */
export class Panel extends Component {
  componentDidCatch(error) {
    console.warn(error);
    this.setState({ about: this.props.about });
  }

  render({ children, what, about }, { about: failed }) {
    if (failed === undefined || failed !== about) return children;
    const message = `${what} cannot be shown, since something in it was not expected. The rest of the page works.`;
    return <Problem error={{ message }} retry={() => this.setState({ about: undefined })} />;
  }
}

export function Waiting({ text }) {
  return (
    <p class="waiting quiet" role="status">
      {text} …
    </p>
  );
}
