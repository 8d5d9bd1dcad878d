// State: all that a view is made of, held by the address, so that a link shares it and Back returns to it.

import { isWhole } from "./graphs.js";

const WORDS = {
  graph: "g",
  view: "v",
  path: "p",
  measure: "m",
  model: "model",
  mix: "mix",
  compare: "vs",
  path2: "p2",
  measure2: "m2",
  model2: "model2",
  mix2: "mix2",
  query: "q",
  queryType: "qt",
  k: "k",
  target: "t",
  side: "side",
  paths: "n",
  type: "type",
  pairs: "pairs",
  skip: "skip",
  ran: "ran",
  job: "job",
  try: "try",
};
const DEFAULTS = {
  graph: null,
  view: "search",
  path: "",
  measure: "pathsim",
  model: null,
  mix: null,
  compare: false,
  path2: "",
  measure2: "joinsim",
  model2: null,
  mix2: null,
  query: null,
  queryType: null,
  k: 10,
  target: null,
  side: "a",
  paths: 10,
  type: null,
  pairs: [],
  skip: [],
  ran: false,
  job: null,
  try: null,
};
const CHOICES = { view: ["search", "example"], side: ["a", "b"] };
const MOST = 100_000;
const listeners = [];

export let state = read(location.hash);

/** Read a state from an address; what makes no sense in it is as if it were not there. */
function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const found = structuredClone(DEFAULTS);
  for (const [name, word] of Object.entries(WORDS)) {
    if (given.has(word)) found[name] = readValue(DEFAULTS[name], given.get(word), name);
  }
  return found.type === null ? { ...found, pairs: [] } : found; // pairs of no type are no pairs
}

function readValue(usual, text, name) {
  if (typeof usual === "number") return /^[0-9]+$/.test(text) && text >= 1 && text <= MOST ? Number(text) : usual;
  if (CHOICES[name]) return CHOICES[name].includes(text) ? text : usual;
  if (typeof usual === "boolean") return text === "1";
  if (name === "mix" || name === "mix2") return readMix(text);
  if (name === "pairs") return readRows(text).filter((row) => Number.isFinite(row[2]));
  return Array.isArray(usual) ? readRows(text) : text;
}

function readMix(text) {
  const parts = readRows(text).filter(
    ([measure, metapath, weight]) =>
      typeof measure === "string" && typeof metapath === "string" && Number.isFinite(weight) && weight >= 0,
  );
  return parts.length ? parts.map(([measure, metapath, weight]) => ({ measure, metapath, weight })) : null;
}

function readRows(text) {
  try {
    const rows = JSON.parse(text);
    return Array.isArray(rows) ? rows.filter((row) => Array.isArray(row) && row.length >= 2 && row.slice(0, 2).every(isId)) : [];
  } catch {
    return [];
  }
}

function isId(value) {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function write(given) {
  const words = new URLSearchParams();
  for (const [name, word] of Object.entries(WORDS)) {
    const value = given[name];
    if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[name])) words.set(word, writeValue(name, value));
  }
  return `#${words}`;
}

function writeValue(name, value) {
  if (name === "mix" || name === "mix2") return JSON.stringify(value.map((p) => [p.measure, p.metapath, p.weight]));
  return typeof value === "boolean" ? "1" : Array.isArray(value) ? JSON.stringify(value) : String(value);
}

/** Change some of the state; `replace` makes no entry of its own for Back. */
export function change(part, { replace = false } = {}) {
  state = { ...state, ...part };
  const address = write(state);
  if (address !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", address);
  tell();
}

/** Call a function now and whenever the state changes. */
export function follow(listener) {
  listeners.push(listener);
}

export function tell() {
  for (const listener of listeners) listener(state);
}

addEventListener("popstate", () => {
  state = read(location.hash);
  tell();
});

/** What similar means on one of the two sides: a measure over a meta-path or the whole graph, a model, a sum. */
export function meaning(side) {
  const end = side === "b" ? "2" : "";
  if (state[`mix${end}`]) return { mix: state[`mix${end}`] };
  if (state[`model${end}`]) return { model: state[`model${end}`] };
  const [path, measure] = [state[`path${end}`], state[`measure${end}`]];
  return isWhole(measure) ? { whole: true, measure, start: path } : { metapath: path, measure };
}

/** Say a meaning in a few words. */
export function meaningText(given) {
  if (given.mix)
    return `found by example (${given.mix.length === 1 ? given.mix[0].metapath : `${given.mix.length} meta-paths`})`;
  if (given.whole) return `${given.measure} over the whole graph`;
  return given.model ? `model ${given.model}` : `${given.measure} on ${given.metapath}`;
}
