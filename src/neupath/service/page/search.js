// Search: a query, its hits under one meaning or two side by side, and the hits both have in common.

import { combobox } from "./combobox.js";
import { announce, at, count, download, el, labelOf, nodeName, problem, shown, svg } from "./dom.js";
import { findNodes, readNode, readPath, resolve, search, served } from "./graphs.js";
import { HitList } from "./hits.js";
import { change, meaning, meaningText, state } from "./state.js";

const SLOW = 300;
const lists = {};
let source = null;
let searching = null;
let last = null;

/** Make the search work; `label(query, target, score)` adds a pair to the examples. */
export function setUpSearch(label) {
  for (const side of ["a", "b"]) {
    lists[side] = new HitList(at(`hits-${side}`), {
      choose: (hit) => change({ target: String(hit.id), side, paths: 10 }),
      label: (hit, score) => label(state.queryType, state.query, hit, score),
    });
    at(`hits-${side}`).addEventListener("pointerover", (event) => tie(event.target.closest("li")?.dataset.id));
    at(`hits-${side}`).addEventListener("focusin", (event) => tie(event.target.closest("li")?.dataset.id));
    at(`hits-${side}`).addEventListener("pointerleave", () => tie(undefined));
  }
  combobox(at("query"), {
    find: async (text, signal) => (source ? nodeOptions(await findNodes(state.graph, source, text, 12, signal)) : []),
    choose: (node) => choose(node),
  });
  at("query").addEventListener("blur", () => (at("query").value = at("query").dataset.chosen ?? ""));
  at("k").addEventListener("change", (event) => change({ k: Number(event.target.value) }));
  at("compare").addEventListener("click", compare);
  at("csv").addEventListener("click", exportHits);
  new ResizeObserver(drawTies).observe(at("columns"));
}

/** Turn found nodes into options of a combobox. */
export function nodeOptions({ nodes, total }) {
  const options = nodes.map((node) => ({
    value: node,
    label: [...nodeName(node, 80), node.match === "spelling" ? el("span", { class: "quiet" }, "spelled alike") : null],
  }));
  return Object.assign(options, { total });
}

function choose(node) {
  if (at("start").contains(document.activeElement)) at("found").focus(); // the chips make room for the hits
  showQuery(node);
  change({ query: String(node.id), queryType: source, target: null });
}

/** Show which node the query is, unless someone is typing another. */
function showQuery(node) {
  at("query").dataset.chosen = shown(labelOf(node), 400);
  at("query").value = at("query").dataset.chosen;
}

async function compare() {
  if (state.compare) return change({ compare: false, side: "a", target: state.side === "b" ? null : state.target });
  const { measures } = await readPath(state.graph, state.path2 || state.path);
  const other = measures.find((name) => name !== state.measure) ?? state.measure;
  return change({ compare: true, path2: state.path2 || state.path, measure2: state.path2 ? state.measure2 : other });
}

async function exportHits() {
  try {
    const sides = state.compare ? ["a", "b"] : ["a"];
    for (const side of sides) {
      const blob = await search(state.graph, meaning(side), state.query, state.k, { accept: "text/csv" });
      download(`hits-${state.graph}${state.compare ? `-${side}` : ""}.csv`, blob);
    }
    announce("exported");
  } catch (error) {
    at("found").replaceChildren(problem(error));
  }
}

/** Show the hits of the state; nothing is asked where nothing they are made of has changed. */
export async function updateSearch() {
  const asked = JSON.stringify([
    state.graph,
    state.query,
    state.queryType,
    state.k,
    meaning("a"),
    state.compare && meaning("b"),
  ]);
  at("compare").setAttribute("aria-pressed", String(state.compare));
  at("compare").textContent = state.compare ? "Compare no more" : "Compare two";
  at("search").classList.toggle("comparing", state.compare);
  document.body.classList.toggle("comparing", state.compare);
  if (![...at("k").options].some((option) => Number(option.value) === state.k))
    at("k").append(el("option", {}, String(state.k)));
  at("k").value = String(state.k);
  if (asked === last) return markHits();
  last = asked;
  searching?.abort();
  searching = new AbortController();
  try {
    await update(searching.signal);
  } catch (error) {
    if (error.name !== "AbortError") fail(error);
  }
  return undefined;
}

function fail(error) {
  lists.a.clear();
  showStart(
    problem(error, () => {
      last = null;
      updateSearch();
    }),
  );
}

async function update(signal) {
  const told = await resolve(state.graph, meaning("a"));
  signal.throwIfAborted();
  at("csv").disabled = at("compare").disabled = !state.query;
  if (told.source) setSource(told.source);
  if (!told.valid) return showUnfinished(told);
  const query =
    state.query !== null && (state.queryType === null || state.queryType === told.source) ? state.query : null;
  if (query === null) return offerStart(told.source, signal);
  showStart();
  at("columns").hidden = false;
  at("columns").setAttribute("aria-busy", "true");
  readNode(state.graph, told.source, query).then(
    (node) => {
      if (!signal.aborted && document.activeElement !== at("query")) showQuery(node);
    },
    () => {},
  );
  const slow = setTimeout(() => {
    at("found").textContent = "Searching …";
    announce("searching");
  }, SLOW);
  try {
    await Promise.all((state.compare ? ["a", "b"] : ["a"]).map((side) => fill(side, query, told.source, signal)));
  } finally {
    clearTimeout(slow);
  }
  if (!state.compare) lists.b.clear();
  at("columns").setAttribute("aria-busy", "false");
  return markHits();
}

async function fill(side, query, type, signal) {
  const given = meaning(side);
  at(`title-${side}`).replaceChildren(
    el("span", { class: `tag ${side}` }, side.toUpperCase()),
    ` ${shown(meaningText(given), 80)}`,
  );
  try {
    if (side === "b") await checkSource(given, type);
    const began = performance.now();
    const found = await search(state.graph, given, query, state.k, { signal });
    const about = { subject: `${state.graph}\n${query}`, meaning: meaningText(given) };
    const moves = lists[side].show(found, about);
    const took = Math.round(performance.now() - began);
    const version = found.version === undefined ? "" : `, version ${found.version}`;
    const told = `${count(found.hits.length, "hit")}, ${found.exact ? "exact" : "learned"}, ${took} ms${version}`;
    if (side === "a") at("found").textContent = told;
    const none = `Nothing is joined to it by ${given.metapath ?? "this meaning"}.`;
    at(`note-${side}`).replaceChildren(found.hits.length ? (moves ?? "") : none);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lists[side].clear();
    at(`note-${side}`).replaceChildren(problem(error));
    if (side === "a") at("found").textContent = "";
  }
}

/** Refuse a second meaning that cannot answer the query of the first. */
async function checkSource(given, type) {
  const { valid, source: from, error } = await resolve(state.graph, given);
  if (!valid) throw new Error(error);
  if (from !== type)
    throw new Error(`This starts at ${from}, and the query is a ${type}; choose a meta-path from ${type}.`);
}

function setSource(type) {
  source = type;
  const nodes = served.graphs.find((graph) => graph.name === state.graph);
  at("query-label").textContent = nodes ? `Find what is similar to a ${shown(type, 40)}` : "Search";
}

/** Keep the hits of the last whole meta-path while another is being built. */
function showUnfinished(told) {
  at("found").textContent = "";
  at("note-a").replaceChildren(lists.a.rows.size ? `These are the hits of ${lists.a.meaning}. ${told.error}` : "");
  if (!lists.a.rows.size)
    showStart(
      el(
        "div",
        { class: "empty" },
        el(
          "p",
          {},
          state.path.trim()
            ? told.error
            : "Say what similar means first: choose types in the picture, or write a meta-path.",
        ),
      ),
    );
}

function showStart(...children) {
  at("start").replaceChildren(...children);
  if (children.length) at("columns").hidden = true;
  if (children.length) at("found").textContent = "";
}

async function offerStart(type, signal) {
  lists.a.clear();
  lists.b.clear();
  delete at("query").dataset.chosen;
  if (document.activeElement !== at("query")) at("query").value = "";
  const { nodes, total } = await findNodes(state.graph, type, "", 8, signal);
  signal.throwIfAborted();
  if (!total) return showStart(el("div", { class: "empty" }, el("p", {}, `There is no ${type} in this graph.`)));
  const chips = nodes.map((node) =>
    el(
      "button",
      { type: "button", class: "chip", onclick: () => choose(node) },
      el("bdi", {}, shown(labelOf(node), 40)),
    ),
  );
  return showStart(
    el(
      "div",
      { class: "empty" },
      el(
        "p",
        {},
        `Type the name or the id of one of ${count(total, `${shown(type, 40)} node`)}, or begin with one of these.`,
      ),
      el("div", { class: "chips" }, chips),
    ),
  );
}

function markHits() {
  const chosen = state.target;
  lists.a.mark(state.side === "a" ? chosen : null, state.compare ? lists.b : null);
  lists.b.mark(state.side === "b" ? chosen : null, state.compare ? lists.a : null);
  drawTies();
}

/** Draw a line between the two places of each hit that both lists have. */
function drawTies() {
  const ties = at("ties");
  if (!state.compare || at("columns").hidden) return ties.replaceChildren();
  const origin = ties.getBoundingClientRect();
  const middle = (row) => row.getBoundingClientRect().top + row.getBoundingClientRect().height / 2 - origin.top;
  const common = [...lists.a.rows].filter(([id]) => lists.b.rows.has(id));
  ties.setAttribute("viewBox", `0 0 ${origin.width || 1} ${origin.height || 1}`);
  return ties.replaceChildren(
    ...common.map(([id, row]) => {
      const [y0, y1, x] = [middle(row), middle(lists.b.rows.get(id)), origin.width];
      return svg("path", { d: `M0 ${y0}C${x / 2} ${y0} ${x / 2} ${y1} ${x} ${y1}`, "data-id": id });
    }),
  );
}

function tie(id) {
  for (const element of [...lists.a.rows.values(), ...lists.b.rows.values(), ...at("ties").children]) {
    element.classList.toggle("tied", state.compare && id !== undefined && element.dataset.id === id);
  }
}
