// Entry point: sets the page up and updates every part when the state changes.

import { announce, at, el, problem, shown } from "./dom.js";
import { updateExample } from "./example.js";
import { setUpExplain, updateExplain } from "./explain.js";
import { firstPath, readServed, served } from "./graphs.js";
import { setUpMeaning, updateMeaning } from "./meaning.js";
import { addPairs } from "./pairs.js";
import { setUpSearch, updateSearch } from "./search.js";
import { change, notify, state, subscribe } from "./state.js";
import { setUpTheme } from "./theme.js";

const EMPTY = {
  path: "",
  model: null,
  mix: null,
  compare: false,
  path2: "",
  model2: null,
  mix2: null,
  query: null,
  queryType: null,
  target: null,
  type: null,
  pairs: [],
  skip: [],
  ran: false,
  job: null,
  try: null,
};

async function chooseGraph(graph, options = {}) {
  const path = await firstPath(graph);
  change({ ...EMPTY, graph, path }, options);
}

function setUpTop() {
  at("graph").addEventListener("change", (event) => guarded(() => chooseGraph(event.target.value)));
  at("skip").addEventListener("click", (event) => {
    event.preventDefault();
    (state.view === "search" ? at("query") : at("example")).focus();
  });
  for (const view of ["search", "example"]) {
    at(`view-${view}`).addEventListener("click", (event) => {
      event.preventDefault();
      change({ view });
    });
  }
  at("copy").hidden = !navigator.clipboard;
  at("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href);
    at("copy").textContent = "Copied";
    announce("link copied");
    setTimeout(() => (at("copy").textContent = "Copy link"), 1500);
  });
}

function showTop() {
  at("graph").replaceChildren(...served.graphs.map(({ name }) => el("option", { value: name }, shown(name, 40))));
  at("graph").value = state.graph;
  for (const view of ["search", "example"])
    at(`view-${view}`).setAttribute("aria-current", state.view === view ? "page" : "false");
  document.body.classList.toggle("by-example", state.view === "example");
  at("search").hidden = state.view !== "search";
  at("example").hidden = state.view !== "example";
  document.title = state.query ? `${shown(state.query, 60)} · neupath` : "neupath";
}

async function show() {
  if (!served.graphs.some((graph) => graph.name === state.graph))
    return chooseGraph(served.graphs[0].name, { replace: true });
  showTop();
  return Promise.all([updateMeaning(), updateSearch(), updateExplain(), updateExample()]);
}

/** Run `work`; show its error, with a button to try again. */
async function guarded(work) {
  try {
    at("failure").replaceChildren();
    await work();
  } catch (error) {
    if (error.name !== "AbortError") at("failure").replaceChildren(problem(error, () => guarded(work)));
  }
}

async function start() {
  await readServed();
  at("page").setAttribute("aria-busy", "false");
  const graph = served.graphs.find(({ name }) => name === state.graph)?.name ?? served.graphs[0].name;
  if (state.path || state.model || state.mix) notify();
  else change({ graph, path: await firstPath(graph) }, { replace: true });
}

setUpTheme();
setUpTop();
setUpMeaning();
setUpExplain();
setUpSearch((type, query, hit, score) => addPairs(type, [[query, hit.id, score]]));
subscribe(() => guarded(show));
guarded(start);
