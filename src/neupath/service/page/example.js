// Search by example: infers meta-paths from labelled pairs, in one request for few pairs, otherwise as a job.

import { events, get, graphPath, post } from "./calls.js";
import { announce, at, count, el, problem, refill, same } from "./dom.js";
import { showInferred } from "./inferred.js";
import { readModels } from "./graphs.js";
import { pairFields, pairList } from "./pairs.js";
import { change, state } from "./state.js";

const MAX_PAIRS_INLINE = 500;
const NO_RESULT = { inputKey: null, result: null, error: null, busy: null };
let parts = null;
let rendered = null;
let current = { ...NO_RESULT };

const inputKey = () => JSON.stringify([state.graph, state.type, state.pairs]);

/** Show the pairs and the inferred result. */
export async function updateExample() {
  at("pair-count").hidden = !state.pairs.length;
  at("pair-count").textContent = String(state.pairs.length);
  at("pair-count").title = count(state.pairs.length, "pair");
  if (state.view !== "example") return;
  parts ??= layOut();
  if (!state.ran && !current.busy) current = { ...NO_RESULT };
  const isOther = rendered?.graph !== state.graph || (state.type && at("pair-type").value !== state.type);
  if (isOther) parts.fields.replaceChildren(await pairFields());
  const isScoring =
    rendered &&
    same(
      rendered.pairs.map((pair) => pair.slice(0, 2)),
      state.pairs.map((pair) => pair.slice(0, 2)),
    );
  if (!isScoring || rendered.graph !== state.graph || !parts.pairs.contains(document.activeElement))
    refill(parts.pairs, [pairList()], parts.heading);
  rendered = { graph: state.graph, type: state.type, pairs: state.pairs };
  const hasFocus = [parts.infer, parts.thorough].includes(document.activeElement);
  if (hasFocus && current.busy !== null) parts.result.focus(); // a button that is disabled would lose the focus
  parts.infer.disabled = parts.thorough.disabled = !state.pairs.length || current.busy !== null;
  if (state.ran && current.inputKey === null && !current.busy) await (state.job ? resume(state.job) : infer());
  else showResult();
}

function layOut() {
  const fields = el("div", {});
  const pairs = el("div", { id: "pairs" });
  const inferButton = el(
    "button",
    { type: "button", class: "main", id: "infer", onclick: () => infer() },
    "Infer what they mean",
  );
  const thorough = el(
    "button",
    {
      type: "button",
      id: "infer-job",
      title: "Run as a job: tries more, shows its progress, can be cancelled",
      onclick: () => inferAsJob(),
    },
    "Search thoroughly",
  );
  const clear = el(
    "button",
    { type: "button", onclick: () => change({ pairs: [], skip: [], ran: false, job: null, try: null }) },
    "Remove all",
  );
  const result = el("div", { id: "inferred", tabindex: -1, role: "region", "aria-label": "What the pairs mean" });
  const heading = el("h3", { tabindex: -1 }, "Pairs");
  at("example-body").replaceChildren(
    el(
      "div",
      { class: "half" },
      heading,
      pairs,
      el("div", { class: "row wrap" }, inferButton, thorough, clear),
      el("h3", {}, "Add a pair"),
      fields,
    ),
    el("div", { class: "half" }, result),
  );
  return { fields, pairs, heading, infer: inferButton, thorough, result };
}

function body() {
  return {
    pairs: state.pairs.map(([query, target, score]) => ({ query, target, score })),
    node_type: state.type,
    skip: state.skip,
    suggest: 1,
  };
}

async function infer() {
  if (state.pairs.length > MAX_PAIRS_INLINE) return inferAsJob();
  current = { inputKey: inputKey(), result: null, error: null, busy: { text: "Inferring meta-paths" } };
  change({ ran: true, job: null }, { replace: state.ran });
  try {
    current.result = await post(graphPath(state.graph, "/infer"), body());
  } catch (error) {
    if (error.status === 504) return inferAsJob();
    current.error = error;
  }
  return finish();
}

async function inferAsJob() {
  current = { inputKey: inputKey(), result: null, error: null, busy: { text: "Waiting" } };
  showResult();
  try {
    const job = await post("/jobs", { kind: "infer", graph: state.graph, ...body() });
    change({ ran: true, job: job.id }, { replace: state.ran });
    await watch(job);
  } catch (error) {
    current.error = error;
  }
  finish();
}

/** Resume the job that the URL names. */
async function resume(id) {
  current = { inputKey: inputKey(), result: null, error: null, busy: { text: "Loading the job" } };
  try {
    await watch(await get(`/jobs/${encodeURIComponent(id)}`));
  } catch (error) {
    current.error = error;
  }
  finish();
}

async function watch(job) {
  let latest = job;
  for await (const { event, data } of events(job.id)) {
    latest = event === "progress" ? { ...latest, progress: data } : data;
    current.busy = {
      job: job.id,
      text: { waiting: "Waiting for its turn", running: "Trying meta-paths" }[latest.state] ?? latest.state,
      ...latest.progress,
    };
    showResult();
  }
  if (latest.state === "cancelled") throw new Error("The job was cancelled.");
  if (latest.state === "failed") throw new Error(latest.error);
  current.result = await get(`/jobs/${job.id}/result`);
  await readModels();
}

function finish() {
  current.busy = null;
  announce(current.error ? current.error.message : current.result.verdict);
  updateExample();
}

/** Show the progress or the result, and keep the focus inside. */
function showResult() {
  const hadFocus = parts.result.contains(document.activeElement);
  fillResult();
  if (hadFocus && !parts.result.contains(document.activeElement)) parts.result.focus();
}

function fillResult() {
  const { busy, error, result } = current;
  parts.result.setAttribute("aria-busy", String(busy !== null));
  if (busy) return parts.result.replaceChildren(waiting(busy));
  if (error) return parts.result.replaceChildren(problem(error));
  if (!result) return parts.result.replaceChildren(el("p", { class: "empty" }, "The result appears here."));
  return showInferred(parts.result, result, { isStale: current.inputKey !== inputKey(), inferAgain: infer });
}

function waiting(busy) {
  const bar = document.querySelector("#inferred progress");
  if (bar && busy.total) {
    [bar.max, bar.value] = [busy.total, busy.done];
    bar.previousElementSibling.textContent = text(busy);
    return bar.closest(".waiting");
  }
  const cancel =
    busy.job &&
    el("button", { type: "button", id: "cancel", onclick: () => post(`/jobs/${busy.job}/cancel`) }, "Cancel");
  return el(
    "div",
    { class: "waiting" },
    el("p", {}, text(busy)),
    el(
      "progress",
      busy.total ? { max: busy.total, value: busy.done, "aria-label": "progress" } : { "aria-label": "progress" },
    ),
    cancel,
  );
}

function text(busy) {
  return busy.total ? `${busy.text}: ${count(busy.done)} of ${count(busy.total)} tried` : `${busy.text} …`;
}
