// Example: pairs in, what they mean out; at once where they are few, as a job that can be watched and cancelled else.

import { events, get, graphPath, post } from "./calls.js";
import { announce, at, count, el, problem, refill, same } from "./dom.js";
import { showInferred } from "./inferred.js";
import { readModels } from "./graphs.js";
import { pairFields, pairList } from "./pairs.js";
import { change, state } from "./state.js";

const AT_ONCE = 500;
const NOTHING = { asked: null, found: null, error: null, busy: null };
let parts = null;
let drawn = null;
let current = { ...NOTHING };

const asked = () => JSON.stringify([state.graph, state.type, state.pairs]);

/** Show the examples and what was found from them. */
export async function updateExample() {
  at("pair-count").hidden = !state.pairs.length;
  at("pair-count").textContent = String(state.pairs.length);
  at("pair-count").title = count(state.pairs.length, "pair");
  if (state.view !== "example") return;
  parts ??= layOut();
  if (!state.ran && !current.busy) current = { ...NOTHING };
  const isOther = drawn?.graph !== state.graph || (state.type && at("pair-type").value !== state.type);
  if (isOther) parts.fields.replaceChildren(await pairFields());
  const isScoring =
    drawn &&
    same(
      drawn.pairs.map((pair) => pair.slice(0, 2)),
      state.pairs.map((pair) => pair.slice(0, 2)),
    );
  if (!isScoring || drawn.graph !== state.graph || !parts.pairs.contains(document.activeElement))
    refill(parts.pairs, [pairList()], parts.heading);
  drawn = { graph: state.graph, type: state.type, pairs: state.pairs };
  const isAsked = [parts.infer, parts.thorough].includes(document.activeElement);
  if (isAsked && current.busy !== null) parts.result.focus(); // what is disabled loses the focus to nobody
  parts.infer.disabled = parts.thorough.disabled = !state.pairs.length || current.busy !== null;
  if (state.ran && current.asked === null && !current.busy) await (state.job ? resume(state.job) : infer());
  else showResult();
}

function layOut() {
  const fields = el("div", {});
  const pairs = el("div", { id: "pairs" });
  const infer_ = el(
    "button",
    { type: "button", class: "main", id: "infer", onclick: () => infer() },
    "Infer what they mean",
  );
  const thorough = el(
    "button",
    {
      type: "button",
      id: "infer-job",
      title: "As a job: tries more, shows how far it is, can be cancelled",
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
      el("div", { class: "row wrap" }, infer_, thorough, clear),
      el("h3", {}, "Add a pair"),
      fields,
    ),
    el("div", { class: "half" }, result),
  );
  return { fields, pairs, heading, infer: infer_, thorough, result };
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
  if (state.pairs.length > AT_ONCE) return inferAsJob();
  current = { asked: asked(), found: null, error: null, busy: { text: "Looking for what they mean" } };
  change({ ran: true, job: null }, { replace: state.ran });
  try {
    current.found = await post(graphPath(state.graph, "/infer"), body());
  } catch (error) {
    if (error.status === 504) return inferAsJob();
    current.error = error;
  }
  return finish();
}

async function inferAsJob() {
  current = { asked: asked(), found: null, error: null, busy: { text: "Waiting" } };
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

/** Take up a job that an address names. */
async function resume(id) {
  current = { asked: asked(), found: null, error: null, busy: { text: "Looking for the job" } };
  try {
    await watch(await get(`/jobs/${encodeURIComponent(id)}`));
  } catch (error) {
    current.error = error;
  }
  finish();
}

async function watch(job) {
  let now = job;
  for await (const { event, data } of events(job.id)) {
    now = event === "progress" ? { ...now, progress: data } : data;
    current.busy = {
      job: job.id,
      text: { waiting: "Waiting for its turn", running: "Trying meta-paths" }[now.state] ?? now.state,
      ...now.progress,
    };
    showResult();
  }
  if (now.state === "cancelled") throw new Error("The job was cancelled.");
  if (now.state === "failed") throw new Error(now.error);
  current.found = await get(`/jobs/${job.id}/result`);
  await readModels();
}

function finish() {
  current.busy = null;
  announce(current.error ? current.error.message : current.found.verdict);
  updateExample();
}

/** Show how far it is, or what was found; who had the focus there keeps it there. */
function showResult() {
  const hadFocus = parts.result.contains(document.activeElement);
  fillResult();
  if (hadFocus && !parts.result.contains(document.activeElement)) parts.result.focus();
}

function fillResult() {
  const { busy, error, found } = current;
  parts.result.setAttribute("aria-busy", String(busy !== null));
  if (busy) return parts.result.replaceChildren(waiting(busy));
  if (error) return parts.result.replaceChildren(problem(error));
  if (!found) return parts.result.replaceChildren(el("p", { class: "empty" }, "What the pairs mean will stand here."));
  return showInferred(parts.result, found, { isStale: current.asked !== asked(), again: infer });
}

function waiting(busy) {
  const told = document.querySelector("#inferred progress");
  if (told && busy.total) {
    [told.max, told.value] = [busy.total, busy.done];
    told.previousElementSibling.textContent = text(busy);
    return told.closest(".waiting");
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
