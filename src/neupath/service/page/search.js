// Search: a query and its hits under one meaning, or under two side by side with their common hits joined.

import { combobox } from "./combobox.js";
import { announce, at, count, download, el, labelOf, nodeName, problem, shown, svg } from "./dom.js";
import { findNodes, readNode, readPath, resolve, search, served } from "./graphs.js";
import { HitList } from "./hits.js";
import { change, meaning, meaningText, state } from "./state.js";

const SLOW_AFTER = 300;
const lists = {};
let source = null;
let request = null;
let last = null;

/** Connect the search to the state; `label(type, query, hit, score)` adds a labelled pair. */
export function setUpSearch(label) {
  for (const side of ["a", "b"]) {
    lists[side] = new HitList(at(`hits-${side}`), {
      choose: (hit) => change({ target: String(hit.id), side, paths: 10 }),
      label: (hit, score) => label(state.queryType, state.query, hit, score),
    });
    at(`hits-${side}`).addEventListener("pointerover", (event) => highlightTie(event.target.closest("li")?.dataset.id));
    at(`hits-${side}`).addEventListener("focusin", (event) => highlightTie(event.target.closest("li")?.dataset.id));
    at(`hits-${side}`).addEventListener("pointerleave", () => highlightTie(undefined));
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

/** Convert nodes into options of a combobox. */
export function nodeOptions({ nodes, total }) {
  const options = nodes.map((node) => ({
    value: node,
    label: [
      ...nodeName(node, 80),
      node.match === "spelling" ? el("span", { class: "quiet" }, "similar spelling") : null,
    ],
  }));
  return Object.assign(options, { total });
}

function choose(node) {
  if (at("start").contains(document.activeElement)) at("found").focus(); // the chips are about to disappear
  showQuery(node);
  change({ query: String(node.id), queryType: source, target: null });
}

/** Show the label of the query in its field. */
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

/** Show the hits of the state; send no request if nothing they depend on has changed. */
export async function updateSearch() {
  const key = JSON.stringify([
    state.graph,
    state.query,
    state.queryType,
    state.k,
    meaning("a"),
    state.compare && meaning("b"),
  ]);
  at("compare").setAttribute("aria-pressed", String(state.compare));
  at("compare").textContent = state.compare ? "Stop comparing" : "Compare two";
  at("search").classList.toggle("comparing", state.compare);
  document.body.classList.toggle("comparing", state.compare);
  if (![...at("k").options].some((option) => Number(option.value) === state.k))
    at("k").append(el("option", {}, String(state.k)));
  at("k").value = String(state.k);
  if (key === last) return markHits();
  last = key;
  request?.abort();
  request = new AbortController();
  try {
    await update(request.signal);
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
  const resolved = await resolve(state.graph, meaning("a"));
  signal.throwIfAborted();
  at("csv").disabled = at("compare").disabled = !state.query;
  if (resolved.source) setSource(resolved.source);
  if (!resolved.valid) return showIncomplete(resolved);
  const query =
    state.query !== null && (state.queryType === null || state.queryType === resolved.source) ? state.query : null;
  if (query === null) return offerStart(resolved.source, signal);
  showStart();
  at("columns").hidden = false;
  at("columns").setAttribute("aria-busy", "true");
  readNode(state.graph, resolved.source, query).then(
    (node) => {
      if (!signal.aborted && document.activeElement !== at("query")) showQuery(node);
    },
    () => {},
  );
  const slow = setTimeout(() => {
    at("found").textContent = "Searching …";
    announce("searching");
  }, SLOW_AFTER);
  try {
    await Promise.all((state.compare ? ["a", "b"] : ["a"]).map((side) => fill(side, query, resolved.source, signal)));
  } finally {
    clearTimeout(slow);
  }
  if (!state.compare) lists.b.clear();
  at("columns").setAttribute("aria-busy", "false");
  return markHits();
}

async function fill(side, query, type, signal) {
  const similarity = meaning(side);
  at(`title-${side}`).replaceChildren(
    el("span", { class: `tag ${side}` }, side.toUpperCase()),
    ` ${shown(meaningText(similarity), 80)}`,
  );
  try {
    if (side === "b") await checkSource(similarity, type);
    const start = performance.now();
    const answer = await search(state.graph, similarity, query, state.k, { signal });
    const about = { subject: `${state.graph}\n${query}`, meaning: meaningText(similarity) };
    const moves = lists[side].show(answer, about);
    const took = Math.round(performance.now() - start);
    const version = answer.version === undefined ? "" : `, version ${answer.version}`;
    const summary = `${count(answer.hits.length, "hit")}, ${answer.exact ? "exact" : "learned"}, ${took} ms${version}`;
    if (side === "a") at("found").textContent = summary;
    const none = `${similarity.metapath ?? "This meaning"} connects nothing to it.`;
    at(`note-${side}`).replaceChildren(answer.hits.length ? (moves ?? "") : none);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lists[side].clear();
    at(`note-${side}`).replaceChildren(problem(error));
    if (side === "a") at("found").textContent = "";
  }
}

/** Throw if the second meaning does not start at the type of the query. */
async function checkSource(similarity, type) {
  const { valid, source: from, error } = await resolve(state.graph, similarity);
  if (!valid) throw new Error(error);
  if (from !== type)
    throw new Error(`This meta-path starts at ${from}, but the query is a ${type}; choose a meta-path from ${type}.`);
}

function setSource(type) {
  source = type;
  const nodes = served.graphs.find((graph) => graph.name === state.graph);
  at("query-label").textContent = nodes ? `Find what is similar to a ${shown(type, 40)}` : "Search";
}

/** Keep the hits of the last valid meta-path while the user edits it. */
function showIncomplete(resolved) {
  at("found").textContent = "";
  at("note-a").replaceChildren(lists.a.rows.size ? `These are the hits of ${lists.a.meaning}. ${resolved.error}` : "");
  if (!lists.a.rows.size)
    showStart(
      el(
        "div",
        { class: "empty" },
        el(
          "p",
          {},
          state.path.trim()
            ? resolved.error
            : "First say what similar means: choose types in the schema, or type a meta-path.",
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
        `Type the name or the id of one of ${count(total, `${shown(type, 40)} node`)}, or start with one of these.`,
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

/** Draw a line between the two rows of each hit that both lists have. */
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

function highlightTie(id) {
  for (const element of [...lists.a.rows.values(), ...lists.b.rows.values(), ...at("ties").children]) {
    element.classList.toggle("tied", state.compare && id !== undefined && element.dataset.id === id);
  }
}
