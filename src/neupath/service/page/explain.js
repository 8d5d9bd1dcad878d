// Explains one score: draws its paths in layers and lists them with their shares.

import { at, count, download, el, isolated, labelOf, percent, problem, score, shown } from "./dom.js";
import { drawPaths, toFile } from "./drawing.js";
import { explain, readSchema, resolve } from "./graphs.js";
import { change, meaning, state } from "./state.js";

const PATHS_PER_CLICK = 20;
const MAX_PATHS = 1000;
let request = null;
let last = null;

export function setUpExplain() {
  at("why-close").addEventListener("click", () => {
    const chosen = document.querySelector(".hit .open[aria-current=true]");
    change({ target: null });
    chosen?.focus();
  });
}

/** Show the explanation of the pair in the state, or hide it. */
export async function updateExplain() {
  const hasPair = state.view === "search" && state.target !== null && state.query !== null;
  at("why").hidden = !hasPair;
  if (!hasPair) {
    last = null;
    return;
  }
  const key = JSON.stringify([state.graph, meaning(state.side), state.query, state.target, state.paths]);
  if (key === last) return;
  const isNew = last === null || JSON.parse(last)[3] !== state.target;
  last = key;
  request?.abort();
  request = new AbortController();
  at("why").setAttribute("aria-busy", "true");
  await show(request.signal, isNew);
}

async function show(signal, isNew) {
  try {
    const similarity = meaning(state.side);
    const resolved = await resolve(state.graph, similarity);
    if (signal.aborted) return;
    if (!resolved.valid || resolved.source !== (state.queryType ?? resolved.source)) {
      last = null; // the query is not of the type that the meta-path starts at
      at("why").hidden = true;
      return;
    }
    const [why, schema] = await Promise.all([
      explain(state.graph, similarity, state.query, state.target, Math.min(state.paths, MAX_PATHS), signal),
      readSchema(state.graph),
    ]);
    if (signal.aborted) return;
    const kinds = schema.node_types.map((type) => type.node_type);
    const parts = partsOf(why);
    const [from, to] = [why.query, why.target].map((node) => labelled(node, parts));
    at("why-title").replaceChildren(el("bdi", {}, shown(from, 60)), " and ", el("bdi", {}, shown(to, 60)));
    refillWhy(parts.map((part, index) => showPart(part, kinds, parts.length > 1 || why.parts ? index : null)));
    if (isNew)
      at("why").scrollIntoView({
        block: "nearest",
        behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
      });
  } catch (error) {
    if (error.name === "AbortError") return;
    at("why-title").textContent = "Why";
    refillWhy([problem(error)]);
  }
  at("why").setAttribute("aria-busy", "false");
}

/** Show an explanation; the focus stays on the button for more paths, or moves to the title. */
function refillWhy(children) {
  const buttons = () => [...at("why-body").querySelectorAll(".more button")];
  const index = buttons().indexOf(document.activeElement);
  const hadFocus = at("why-body").contains(document.activeElement);
  at("why-body").replaceChildren(...children);
  if (hadFocus) (buttons()[index] ?? at("why-title")).focus();
}

function labelled(node, parts) {
  if (node !== null && typeof node === "object") return labelOf(node);
  const ends = parts.flatMap((part) => part.paths).flatMap((path) => [path.nodes[0], path.nodes.at(-1)]);
  const end = ends.find((one) => String(one.id) === String(node));
  return end ? labelOf(end) : String(node);
}

/** Convert the explanation of a measure, a combination or a learned model into one form. */
function partsOf(why) {
  if (why.instances)
    return [{ ...fromInstances(why), formula: `${why.measure} = ${why.formula} = ${score(why.score)}` }];
  if (why.parts) {
    return why.parts.map((part) => ({
      ...fromInstances(part),
      total: why.score,
      more: { ...part.more, share: part.weight * part.more.share },
      formula:
        `${score(part.weight)} × ${part.measure} ${score(part.score)} = ` +
        `${score(part.share)} of ${score(why.score)}`,
    }));
  }
  const grouped = new Map();
  for (const path of why.paths) {
    const key = `${path.metapath}${path.from_query ? "" : " (from the target only)"}`;
    grouped.set(key, [...(grouped.get(key) ?? []), { ...path, share: path.weight }]);
  }
  return [...grouped].map(([metapath, paths]) => ({
    metapath,
    paths,
    total: 1,
    more: null,
    types: paths[0].nodes.map((node) => node.node_type),
    formula: `${why.measure} = ${score(why.score)}; shares are of the model's attention`,
  }));
}

function fromInstances(part) {
  const types = part.instances[0]?.nodes.map((node) => node.node_type) ?? [];
  const { metapath, instances, score: total, more, summary } = part;
  return { metapath, paths: instances, total, more, types, summary };
}

function showPart(part, kinds, index) {
  const heading = index === null ? null : el("h3", {}, shown(part.metapath, 120));
  const formula = el("p", { class: "formula" }, part.formula);
  if (!part.paths.length)
    return el("div", { class: "part" }, heading, formula, el("p", { class: "empty" }, shown(part.summary, 300)));
  const details = el("p", { class: "details quiet" });
  const idle = "Point at a node or a line, or use Tab and the arrow keys.";
  const describe = (text) => (details.textContent = text || idle);
  describe("");
  const room = Math.min(960, Math.max(300, at("why-body").clientWidth - 2));
  const picture = drawPaths(part.types, part.paths, { total: part.total, kinds, room, describe });
  const save = () => saveDrawing(picture);
  return el(
    "div",
    { class: "part" },
    heading,
    el(
      "div",
      { class: "bar-of-tools" },
      formula,
      el("button", { type: "button", class: "save-svg", onclick: save }, "Export SVG"),
    ),
    el(
      "div",
      {
        class: "canvas",
        tabindex: picture.getAttribute("width") > room + 1 ? 0 : null,
        role: "region",
        "aria-label": "Drawing of the paths",
      },
      picture,
    ),
    details,
    listPaths(part, picture),
    showMore(part),
  );
}

function saveDrawing(picture) {
  const name = `paths-${shown(state.query, 30)}-${shown(state.target, 30)}.svg`.replace(/[^\w.-]+/g, "_");
  download(name, toFile(picture, getComputedStyle(document.body).backgroundColor));
}

function listPaths(part, picture) {
  return el(
    "ol",
    { class: "instances" },
    part.paths.map((path, index) => {
      const bar = el("span", { class: "bar", "aria-hidden": "true" }, el("span", {}));
      bar.firstChild.style.width = `${part.total ? Math.min(100, (100 * path.share) / part.total) : 0}%`;
      const walk = path.nodes.flatMap((node, place) => [
        place ? el("span", { class: "link" }, ` ${shown(path.links[place - 1], 40)} `) : null,
        el("bdi", { class: "name", title: shown(node.id, 300) }, shown(labelOf(node), 60)),
      ]);
      return el(
        "li",
        { onpointerenter: () => picture.focusPath(index), onpointerleave: () => picture.focusPath(null) },
        el("span", { class: "score" }, score(path.share)),
        bar,
        el("span", { class: "share" }, part.total ? percent(path.share / part.total) : "–"),
        el("span", { class: "walk" }, walk),
      );
    }),
  );
}

function showMore({ more, total }) {
  if (!more?.instances) return null;
  const share = total ? `, together ${score(more.share)} of the score` : "";
  const text = `and ${count(more.instances)} more${share}`;
  if (state.paths >= MAX_PATHS) return el("p", { class: "quiet" }, text);
  return el(
    "p",
    { class: "more" },
    el(
      "button",
      { type: "button", onclick: () => change({ paths: state.paths + PATHS_PER_CLICK }, { replace: true }) },
      `${isolated(text)}: show ${Math.min(PATHS_PER_CLICK, more.instances)}`,
    ),
  );
}
