// Shows an inferred result: meta-paths with weights, the fit, the next pair to label, alternatives, a trial search.

import { el, nodeName, score, shown, svg } from "./dom.js";
import { addPairs, scoreField } from "./pairs.js";
import { change, state } from "./state.js";
import { openSearch, Trial } from "./trial.js";

let shownFor = null;
let trial = null;

/** Show a result in `place`; keep the trial search if the result is still the same. */
export function showInferred(place, result, { isStale, inferAgain }) {
  if (shownFor !== result) {
    trial = new Trial(mixOf(result));
    shownFor = result;
  }
  const stale = isStale
    ? el(
        "p",
        { class: "note stale" },
        "The pairs have changed since then. ",
        el("button", { type: "button", onclick: inferAgain }, "Infer again"),
      )
    : null;
  const old = place.contains(trial.element);
  const parts = [
    stale,
    el("h3", {}, "What they mean"),
    el("p", { class: "verdict" }, `${result.verdict[0].toUpperCase()}${result.verdict.slice(1)}.`),
    weights(result),
    fit(result),
    suggested(result, inferAgain),
    alternatives(result),
  ].filter(Boolean);
  if (old) [...place.children].forEach((child) => child !== trial.element && child.remove());
  else place.replaceChildren(trial.element);
  trial.element.before(...parts);
  trial.update();
}

const mixOf = (result, metapaths = result.metapaths) =>
  metapaths.map(({ metapath, weight }) => ({ measure: result.measure, metapath, weight }));

/** List the meta-paths with their weights and confidence intervals. */
function weights(result) {
  const most = Math.max(1e-9, ...result.metapaths.map((part) => Math.max(part.weight, part.high ?? 0)));
  return el(
    "ul",
    { class: "weights", "aria-label": "Inferred meta-paths" },
    result.metapaths.map((part) => {
      const range =
        part.low === null || part.low === undefined ? "" : `between ${score(part.low)} and ${score(part.high)}`;
      return el(
        "li",
        {},
        el("span", { class: "name" }, shown(part.metapath, 120)),
        el("span", { class: "score" }, score(part.weight)),
        interval(part, most),
        el("span", { class: "quiet" }, range),
      );
    }),
  );
}

function interval({ weight, low, high }, most) {
  const x = (value) => (199 * Math.max(0, value)) / most;
  const known = low !== null && low !== undefined;
  return svg(
    "svg",
    { viewBox: "0 0 200 14", class: "interval", "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("rect", { x: 0, y: 3, width: x(weight), height: 8, class: "fill" }),
    known ? svg("path", { d: `M${x(low)} 7H${x(high)}M${x(low)} 2V12M${x(high)} 2V12`, class: "range" }) : null,
  );
}

function fit(result) {
  const { tried, candidates, stopped } = result.searched;
  const extent = `${tried} of ${candidates} meta-paths tried${stopped ? `; stopped because ${stopped}` : ""}.`;
  const rows = [
    ["Measure", result.measure],
    ["RMSE", result.rmse],
    ["R²", result.r2],
    ["AUC", result.auc],
    ["Held-out RMSE", result.held_out_rmse],
    ["Held-out R²", result.held_out_r2],
    ["Held-out AUC", result.held_out_auc],
  ]
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, typeof value === "number" ? score(value) : value)),
    );
  return el("div", {}, el("dl", { class: "fit" }, rows), el("p", { class: "quiet" }, extent));
}

/** Show the pair whose label separates the alternatives best. */
function suggested(result, inferAgain) {
  const [next] = result.suggestions;
  if (!next) return null;
  const [query, target] = [
    { id: next.query, name: next.query_name },
    { id: next.target, name: next.target_name },
  ];
  const field = scoreField(0.5, "the suggested pair", () => {});
  const label = () => {
    addPairs(state.type, [[next.query, next.target, field.value()]]);
    inferAgain();
  };
  const skip = () => {
    change({ skip: [...state.skip, [String(next.query), String(next.target)]] }, { replace: true });
    inferAgain();
  };
  const predictions = next.scores
    .map((value, index) => `${index ? `alternative ${index + 1}` : "this result"} scores it ${score(value)}`)
    .join(", ");
  return el(
    "div",
    { class: "suggested" },
    el("h3", {}, "The next pair to label"),
    el("p", { class: "who" }, nodeName(query, 80), el("span", { class: "link" }, " and "), nodeName(target, 80)),
    el("p", { class: "quiet" }, `${predictions}.`),
    el(
      "div",
      { class: "row wrap" },
      field.element,
      el("button", { type: "button", class: "main", id: "label-next", onclick: label }, "Label it"),
      el("button", { type: "button", id: "skip-next", onclick: skip }, "Another"),
    ),
  );
}

function alternatives(result) {
  if (!result.alternatives.length) return null;
  return el(
    "div",
    {},
    el("h3", {}, "Alternatives that explain the pairs equally well"),
    el(
      "ol",
      { class: "alternatives", start: 2 },
      result.alternatives.map((other) => {
        const parts = other.metapaths.map((part) => `${score(part.weight)} × ${shown(part.metapath, 80)}`).join(" + ");
        const mix = mixOf(other);
        return el(
          "li",
          {},
          el("span", {}, `${other.measure}: ${parts}`),
          el("button", { type: "button", onclick: () => openSearch(mix) }, "Search with it"),
        );
      }),
    ),
  );
}
