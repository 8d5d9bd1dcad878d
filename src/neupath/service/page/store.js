// The state of the page. It lives in the URL, so that links share it and Back and Forward work; every part derives from it.

import { useEffect, useReducer } from "preact/hooks";

const SWITCH = { read: (text) => text === "1", write: () => "1" };
/** Each field of the state: its key in the URL, its default, and how its text is read. */
const FIELDS = {
  graph: { key: "g", initial: null },
  view: {
    key: "v",
    initial: "explore",
    choices: ["explore", "relate", "examples", "jobs"],
    read: (text) => (text === "example" ? "examples" : text), // as older links call it
  },
  query: { key: "q", initial: null },
  queryType: { key: "qt", initial: null },
  path: { key: "p", initial: "" },
  measure: { key: "m", initial: "pathsim" },
  model: { key: "model", initial: null },
  mix: { key: "mix", initial: null, read: readMix, write: writeMix },
  target: { key: "t", initial: null },
  targetType: { key: "tt", initial: null },
  side: { key: "side", initial: "a", choices: ["a", "b"] },
  by: { key: "by", initial: null },
  group: { key: "group", initial: null },
  k: { key: "k", initial: 10, read: readNumber },
  members: { key: "with", initial: [], read: readIds }, // of a set, besides query
  less: { key: "without", initial: [], read: readIds }, // nodes of the set that count against a hit
  where: { key: "where", initial: [], read: readTexts },
  unless: { key: "unless", initial: [], read: readTexts },
  show: { key: "show", initial: "list", choices: ["list", "map"] },
  build: { key: "build", initial: false, ...SWITCH },
  compare: { key: "vs", initial: false, ...SWITCH },
  chance: { key: "chance", initial: false, ...SWITCH }, // p-values are asked for
  whatIf: { key: "whatif", initial: false, ...SWITCH }, // what would change the hit is asked for
  all: { key: "all", initial: false, ...SWITCH }, // all reasons of the hit are shown
  steps: { key: "steps", initial: 4, read: readNumber }, // of a meta-path between two nodes
  path2: { key: "p2", initial: "" },
  measure2: { key: "m2", initial: "joinsim" },
  model2: { key: "model2", initial: null },
  type: { key: "type", initial: null },
  pairs: { key: "pairs", initial: [], read: (text) => readRows(text).filter((row) => Number.isFinite(row[2])) },
};
const MAX_NUMBER = 1000;
/** The state of a page that nothing was asked of. */
export const INITIAL = Object.fromEntries(Object.entries(FIELDS).map(([name, { initial }]) => [name, initial]));
const listeners = new Set();

export let state = read(location.hash);

function read(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const values = { ...INITIAL };
  for (const [name, field] of Object.entries(FIELDS)) {
    if (parameters.has(field.key)) values[name] = readField(field, parameters.get(field.key));
  }
  return values.type === null ? { ...values, pairs: [] } : values; // pairs need a node type
}

function readField({ initial, choices, read: parse }, text) {
  const value = parse ? (parse(text) ?? initial) : text;
  return !choices || choices.includes(value) ? value : initial;
}

function readNumber(text) {
  return /^[0-9]+$/.test(text) && text >= 1 && text <= MAX_NUMBER ? Number(text) : null;
}

function readJson(text) {
  try {
    const value = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function readIds(text) {
  return readJson(text).filter(isId).map(String);
}

function readTexts(text) {
  return readJson(text).filter((one) => typeof one === "string");
}

function isId(value) {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function readRows(text) {
  return readJson(text).filter((row) => Array.isArray(row) && row.length >= 2 && row.slice(0, 2).every(isId));
}

function readMix(text) {
  const isPart = ([measure, metapath, weight]) =>
    typeof measure === "string" && typeof metapath === "string" && Number.isFinite(weight) && weight >= 0;
  const parts = readRows(text).filter(isPart);
  return parts.length ? parts.map(([measure, metapath, weight]) => ({ measure, metapath, weight })) : null;
}

function writeMix(mix) {
  return JSON.stringify(mix.map((part) => [part.measure, part.metapath, part.weight]));
}

/** Return the hash of a state. */
export function addressOf(values) {
  const parameters = new URLSearchParams();
  for (const [name, { key, initial, write }] of Object.entries(FIELDS)) {
    const value = values[name];
    if (value === null || JSON.stringify(value) === JSON.stringify(initial)) continue;
    parameters.set(key, write ? write(value) : Array.isArray(value) ? JSON.stringify(value) : String(value));
  }
  return `#${parameters}`;
}

const OF_SEARCH = ["graph", "query", "queryType", "members", "less", "path", "measure", "model", "mix"];
const OF_LIST = [...OF_SEARCH, "k", "where", "unless"];
const OF_HIT = [...OF_SEARCH, "k", "target", "targetType", "side"];

/** This state with some fields changed; what was asked of a list or a hit goes with it. */
function changed(part) {
  const isOther = (name) => name in part && JSON.stringify(part[name]) !== JSON.stringify(state[name]);
  return {
    ...state,
    ...(OF_LIST.some(isOther) ? { chance: false } : {}),
    ...(OF_HIT.some(isOther) ? { whatIf: false, all: false } : {}),
    ...part,
  };
}

/** Return the hash of this state with some fields changed, for links. */
export function linkTo(part) {
  return addressOf(changed(part));
}

/** Change part of the state; `replace` adds no entry to the history. */
export function change(part, { replace = false } = {}) {
  state = changed(part);
  const address = addressOf(state);
  if (address !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", address);
  notify();
}

export function notify() {
  for (const listener of [...listeners]) listener();
}

addEventListener("popstate", () => {
  state = read(location.hash);
  notify();
});

/** Draw a component again whenever the state changes, and return the state. */
export function useStore() {
  const [, redraw] = useReducer((count) => count + 1, 0);
  useEffect(() => {
    listeners.add(redraw);
    return () => listeners.delete(redraw);
  }, []);
  return state;
}

const NO_MEANING = { path: "", model: null, mix: null, measure: "pathsim" };
const NO_TARGET = { target: null, targetType: null, group: null, by: null };

/** The part of a state that shows one node; the meaning stays only if it starts at the same type. */
export function atNode(node) {
  return {
    ...NO_MEANING,
    ...NO_TARGET,
    view: "explore",
    query: String(node.id),
    queryType: node.node_type,
    members: [],
    less: [],
    where: [],
    unless: [],
    compare: false,
    show: "list",
    build: false,
    side: "a",
  };
}

/** The part of a state that searches from a node along a meta-path, and explains a hit if one is given. */
export function atSearch(node, path, target = null) {
  return { ...atNode(node), path, target };
}

/** Return the meaning of one side: a measure on a meta-path or the whole graph, a model, or a combination; or null. */
export function meaningOf(values, side, isWhole) {
  const end = side === "b" ? "2" : "";
  if (side === "a" && values.mix) return { mix: values.mix };
  if (values[`model${end}`]) return { model: values[`model${end}`] };
  const [metapath, measure] = [values[`path${end}`], values[`measure${end}`]];
  if (isWhole(measure)) return { measure, whole: true };
  return metapath.trim() ? { metapath, measure } : null;
}

// ---- What this browser remembers ------------------------------------------------------------------
const RECENT = "neupath.recent";
const SAVED = "neupath.saved";
const MOST_RECENT = 8;

/** A storage of the browser; where site data is blocked, memory stands in for it until the page is closed. */
function storageOf(kind) {
  try {
    if (globalThis[kind]) return globalThis[kind];
  } catch {
    // blocked
  }
  const kept = new Map();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => kept.set(key, text),
    removeItem: (key) => kept.delete(key),
  };
}

/** What stays in this browser, and what stays in this tab. */
export const [browserStorage, tabStorage] = ["localStorage", "sessionStorage"].map(storageOf);

function readStored(key) {
  try {
    const rows = JSON.parse(browserStorage.getItem(key) ?? "[]");
    return Array.isArray(rows) ? rows.filter((row) => typeof row?.title === "string" && /^#/.test(row.address)) : [];
  } catch {
    return [];
  }
}

function writeStored(key, rows) {
  try {
    browserStorage.setItem(key, JSON.stringify(rows));
  } catch {
    // the storage is full or forbidden: remembered searches are a convenience
  }
}

/** What is remembered of a search: the words of its title, and its address without marks. */
const rowOf = (title, values) => ({
  title,
  graph: values.graph,
  address: addressOf({ ...values, pairs: [], type: null, show: "list", build: false, side: "a" }),
});

export const recentSearches = (graph) => readStored(RECENT).filter((row) => row.graph === graph);
export const savedSearches = (graph) => readStored(SAVED).filter((row) => row.graph === graph);

export function remember(title, values) {
  const row = rowOf(title, values);
  const others = readStored(RECENT).filter((one) => one.title !== title || one.graph !== row.graph);
  writeStored(RECENT, [row, ...others].slice(0, MOST_RECENT * 4));
}

export const isSaved = (values) => readStored(SAVED).some((row) => row.address === rowOf("", values).address);

/** Keep a search until it is removed. */
export function saveSearch(title, values) {
  writeStored(SAVED, [rowOf(title, values), ...readStored(SAVED)]);
  notify();
}

/** Forget a saved search, by its state or its address. */
export function unsaveSearch(search) {
  const address = typeof search === "string" ? search : rowOf("", search).address;
  writeStored(
    SAVED,
    readStored(SAVED).filter((row) => row.address !== address),
  );
  notify();
}

addEventListener("storage", notify); // another tab has saved or removed one

export function forgetSearches() {
  browserStorage.removeItem(RECENT);
}
