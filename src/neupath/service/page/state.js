// State of the view, stored in the URL, so that links share it and Back and Forward work.

import { isWhole } from "./graphs.js";

const URL_KEYS = {
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
const MAX_NUMBER = 100_000;
const listeners = [];

export let state = read(location.hash);

/** Read the state from a URL hash; invalid values are ignored. */
function read(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const values = structuredClone(DEFAULTS);
  for (const [name, key] of Object.entries(URL_KEYS)) {
    if (parameters.has(key)) values[name] = readValue(DEFAULTS[name], parameters.get(key), name);
  }
  return values.type === null ? { ...values, pairs: [] } : values; // pairs need a node type
}

function readValue(fallback, text, name) {
  const isNumber = /^[0-9]+$/.test(text) && text >= 1 && text <= MAX_NUMBER;
  if (typeof fallback === "number") return isNumber ? Number(text) : fallback;
  if (CHOICES[name]) return CHOICES[name].includes(text) ? text : fallback;
  if (typeof fallback === "boolean") return text === "1";
  if (name === "mix" || name === "mix2") return readMix(text);
  if (name === "pairs") return readRows(text).filter((row) => Number.isFinite(row[2]));
  return Array.isArray(fallback) ? readRows(text) : text;
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
    const isRow = (row) => Array.isArray(row) && row.length >= 2 && row.slice(0, 2).every(isId);
    return Array.isArray(rows) ? rows.filter(isRow) : [];
  } catch {
    return [];
  }
}

function isId(value) {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function write(values) {
  const parameters = new URLSearchParams();
  for (const [name, key] of Object.entries(URL_KEYS)) {
    const value = values[name];
    if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[name])) parameters.set(key, writeValue(name, value));
  }
  return `#${parameters}`;
}

function writeValue(name, value) {
  if (name === "mix" || name === "mix2") return JSON.stringify(value.map((p) => [p.measure, p.metapath, p.weight]));
  return typeof value === "boolean" ? "1" : Array.isArray(value) ? JSON.stringify(value) : String(value);
}

/** Change part of the state; `replace` adds no entry to the history. */
export function change(part, { replace = false } = {}) {
  state = { ...state, ...part };
  const address = write(state);
  if (address !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", address);
  notify();
}

/** Call a function whenever the state changes. */
export function subscribe(listener) {
  listeners.push(listener);
}

export function notify() {
  for (const listener of listeners) listener(state);
}

addEventListener("popstate", () => {
  state = read(location.hash);
  notify();
});

/** Return the meaning of one side: a measure on a meta-path or the whole graph, a model, or a combination. */
export function meaning(side) {
  const end = side === "b" ? "2" : "";
  if (state[`mix${end}`]) return { mix: state[`mix${end}`] };
  if (state[`model${end}`]) return { model: state[`model${end}`] };
  const [path, measure] = [state[`path${end}`], state[`measure${end}`]];
  return isWhole(measure) ? { whole: true, measure, start: path } : { metapath: path, measure };
}

/** Describe a meaning in a few words. */
export function meaningText(similarity) {
  const { mix, whole, model, measure, metapath } = similarity;
  if (mix) return `found by example (${mix.length === 1 ? mix[0].metapath : `${mix.length} meta-paths`})`;
  if (whole) return `${measure} over the whole graph`;
  return model ? `model ${model}` : `${measure} on ${metapath}`;
}
