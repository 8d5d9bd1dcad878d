// The labelled pairs with their scores, and the fields that add pairs.

import { combobox } from "./combobox.js";
import { announce, count, el, isolated, labelOf, nodeName, shown } from "./dom.js";
import { findNodes, readNode, readSchema, resolve } from "./graphs.js";
import { nodeOptions } from "./search.js";
import { change, meaning, state } from "./state.js";

const MAX_ROWS = 200;

/** Add pairs; a pair that exists gets the new score. Pairs of another type are dropped. */
export function addPairs(type, added) {
  const existing = state.type === null || state.type === type ? state.pairs : [];
  const pairs = new Map(existing.map((pair) => [JSON.stringify(pair.slice(0, 2).map(String)), pair]));
  for (const [query, target, score] of added)
    pairs.set(JSON.stringify([query, target].map(String)), [String(query), String(target), score]);
  change({ type, pairs: [...pairs.values()] });
  announce(count(pairs.size, "pair"));
}

function removePair(index) {
  change({ pairs: state.pairs.filter((_, position) => position !== index) });
}

function setScore(index, score) {
  change(
    { pairs: state.pairs.map((pair, position) => (position === index ? [pair[0], pair[1], score] : pair)) },
    { replace: true },
  );
}

/** Make a slider and a number field for the same score. */
export function scoreField(value, label, onChange) {
  const slider = el("input", { type: "range", min: 0, max: 1, step: 0.01, value, "aria-label": `Score of ${label}` });
  const number = el("input", {
    type: "number",
    min: 0,
    max: 1,
    step: "any",
    value,
    "aria-label": `Score of ${label} as a number`,
  });
  const read = (field) => Math.min(1, Math.max(0, Number(field.value) || 0));
  slider.addEventListener("input", () => (number.value = slider.value));
  number.addEventListener("input", () => (slider.value = number.value));
  slider.addEventListener("change", () => onChange(read(slider)));
  number.addEventListener("change", () => onChange((number.value = read(number))));
  return { element: el("span", { class: "scoring" }, slider, number), value: () => read(number) };
}

/** Show the collected pairs. */
export function pairList() {
  const rows = state.pairs.slice(0, MAX_ROWS).map(([query, target, score], index) => {
    const label = `${isolated(query, 60)} and ${isolated(target, 60)}`;
    const who = el(
      "span",
      { class: "who" },
      nodeLabel(query),
      el("span", { class: "link" }, " and "),
      nodeLabel(target),
    );
    return el(
      "li",
      { class: "pair" },
      who,
      scoreField(score, label, (value) => setScore(index, value)).element,
      el(
        "button",
        { type: "button", "aria-label": `Remove ${label}`, title: "Remove", onclick: () => removePair(index) },
        "✕",
      ),
    );
  });
  const others = state.pairs.length - rows.length;
  if (!rows.length)
    return el("p", { class: "empty" }, "No pairs yet. Add some here, or mark hits of a search with ✓ and ✕.");
  return el(
    "div",
    {},
    el("ol", { class: "pairs" }, rows),
    others > 0 ? el("p", { class: "quiet" }, `and ${others} more`) : null,
  );
}

function nodeLabel(id) {
  const label = el("span", { class: "node" }, el("bdi", { class: "name" }, shown(id, 80)));
  if (state.pairs.length <= MAX_ROWS)
    readNode(state.graph, state.type, id).then(
      (node) => label.replaceChildren(...nodeName(node, 60)),
      () => {},
    );
  return label;
}

/** Show the fields that add pairs: two nodes and a score, or a text with one pair per line. */
export async function pairFields() {
  const { node_types: types, steps } = await readSchema(state.graph);
  const linked = types.map((type) => type.node_type).filter((type) => steps.some((step) => step.source === type));
  const select = typeField(linked, state.type ?? (await resolve(state.graph, meaning("a"))).source);
  const [query, target] = [
    nodeField("pair-query", "First node", () => select.value),
    nodeField("pair-target", "Second node", () => select.value),
  ];
  const score = scoreField(1, "the new pair", () => {});
  const error = el("p", { class: "status bad", role: "status" });
  const add = () => {
    const [one, other] = [query.chosen(), target.chosen()];
    error.textContent = one && other ? "" : "Choose both nodes from the lists.";
    if (!one || !other) return;
    target.clear();
    addPairs(select.value, [[one.id, other.id, score.value()]]);
  };
  return el(
    "div",
    { class: "add-pair" },
    el("div", { class: "field inline" }, el("label", { for: "pair-type" }, "Pairs of"), select),
    el("div", { class: "two" }, query.element, target.element),
    el(
      "div",
      { class: "row" },
      score.element,
      el("button", { type: "button", id: "add-pair", onclick: add }, "Add pair"),
    ),
    error,
    pasteField(() => select.value),
  );
}

function typeField(types, chosen) {
  const reset = () => change({ type: select.value, pairs: [], skip: [], ran: false, job: null, try: null });
  const options = types.map((type) => el("option", { value: type }, shown(type, 40)));
  const select = el("select", { id: "pair-type", onchange: reset }, options);
  if (types.includes(chosen)) select.value = chosen;
  return select;
}

function nodeField(id, label, type) {
  const input = el("input", { id, type: "text", placeholder: "Name or id" });
  const element = el("div", { class: "field" }, el("label", { for: id }, label), input);
  let node = null;
  input.addEventListener("input", () => (node = null));
  combobox(input, {
    find: async (text, signal) => nodeOptions(await findNodes(state.graph, type(), text, 12, signal)),
    choose: (choice) => {
      input.value = shown(labelOf(choice));
      node = choice;
    },
  });
  const clear = () => {
    node = null;
    input.value = "";
    input.focus();
  };
  return { element, chosen: () => node, clear };
}

function pasteField(type) {
  const area = el("textarea", { id: "paste", rows: 4, placeholder: "query,target,score", spellcheck: "false" });
  const status = el("p", { class: "status", role: "status" });
  const read = () => {
    const { pairs, wrong } = readPairs(area.value);
    status.className = `status ${wrong ? "bad" : ""}`;
    status.textContent = wrong ?? "";
    if (!wrong) addPairs(type(), pairs);
  };
  return el(
    "details",
    {},
    el("summary", {}, "Paste many"),
    el(
      "label",
      { for: "paste", class: "quiet" },
      "One pair per line: query, target and score, separated by commas or tabs. Without a score, the pair is similar.",
    ),
    area,
    el("button", { type: "button", onclick: read, id: "paste-add" }, "Add all"),
    status,
  );
}

/** Parse one pair per line; `wrong` describes the first invalid line. */
export function readPairs(text) {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line && !/^query\s*[,\t]\s*target/i.test(line));
  const pairs = lines.map((line) => {
    const [query, target, score = "1"] = line.split(line.includes("\t") ? "\t" : ",").map((part) => part.trim());
    return [query, target, score === "" ? NaN : Number(score)];
  });
  const bad = pairs.findIndex(([query, target, score]) => !query || !target || !Number.isFinite(score));
  if (!pairs.length) return { pairs, wrong: "The text contains no pairs." };
  if (bad < 0) return { pairs, wrong: null };
  return { pairs, wrong: `“${shown(lines[bad], 60)}” is not a pair: write query, target and score.` };
}
