// Inferred: what pairs mean, how sure that is, which pair to label next, and the search it gives.

import { el, nodeName, score, shown, svg } from "./dom.js";
import { addPairs, scoreField } from "./pairs.js";
import { change, state } from "./state.js";
import { openSearch, Trial } from "./trial.js";

let shownFor = null;
let trial = null;

/** Show what was found in a place; a trial search that goes on is left as it is. */
export function showInferred(place, found, { isStale, again }) {
  if (shownFor !== found) {
    trial = new Trial(mixOf(found));
    shownFor = found;
  }
  const stale = isStale
    ? el(
        "p",
        { class: "note stale" },
        "The pairs have changed since. ",
        el("button", { type: "button", onclick: again }, "Infer again"),
      )
    : null;
  const old = place.contains(trial.element);
  const parts = [
    stale,
    el("h3", {}, "What they mean"),
    el("p", { class: "verdict" }, `${found.verdict[0].toUpperCase()}${found.verdict.slice(1)}.`),
    weights(found),
    fit(found),
    suggested(found, again),
    alternatives(found),
  ].filter(Boolean);
  if (old) [...place.children].forEach((child) => child !== trial.element && child.remove());
  else place.replaceChildren(trial.element);
  trial.element.before(...parts);
  trial.update();
}

const mixOf = (found, metapaths = found.metapaths) =>
  metapaths.map(({ metapath, weight }) => ({ measure: found.measure, metapath, weight }));

/** List the meta-paths with their weights, and the range in which each weight surely lies. */
function weights(found) {
  const most = Math.max(1e-9, ...found.metapaths.map((part) => Math.max(part.weight, part.high ?? 0)));
  return el(
    "ul",
    { class: "weights", "aria-label": "Meta-paths that were found" },
    found.metapaths.map((part) => {
      const certain =
        part.low === null || part.low === undefined ? "" : `between ${score(part.low)} and ${score(part.high)}`;
      return el(
        "li",
        {},
        el("span", { class: "name" }, shown(part.metapath, 120)),
        el("span", { class: "score" }, score(part.weight)),
        interval(part, most),
        el("span", { class: "quiet" }, certain),
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

function fit(found) {
  const { tried, candidates, stopped } = found.searched;
  const extent = `${tried} of ${candidates} meta-paths tried${stopped ? `; stopped since ${stopped}` : ""}.`;
  const told = [
    ["Measure", found.measure],
    ["RMSE", found.rmse],
    ["R²", found.r2],
    ["AUC", found.auc],
    ["Held-out RMSE", found.held_out_rmse],
    ["Held-out R²", found.held_out_r2],
    ["Held-out AUC", found.held_out_auc],
  ]
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, typeof value === "number" ? score(value) : value)),
    );
  return el("div", {}, el("dl", { class: "fit" }, told), el("p", { class: "quiet" }, extent));
}

/** Show the pair whose label would tell the most. */
function suggested(found, again) {
  const [next] = found.suggestions;
  if (!next) return null;
  const [query, target] = [
    { id: next.query, name: next.query_name },
    { id: next.target, name: next.target_name },
  ];
  const field = scoreField(0.5, "the suggested pair", () => {});
  const label = () => {
    addPairs(state.type, [[next.query, next.target, field.value()]]);
    again();
  };
  const skip = () => {
    change({ skip: [...state.skip, [String(next.query), String(next.target)]] }, { replace: true });
    again();
  };
  const told = next.scores
    .map((value, index) => `${index ? `explanation ${index + 1}` : "the one above"} says ${score(value)}`)
    .join(", ");
  return el(
    "div",
    { class: "suggested" },
    el("h3", {}, "The next pair to label"),
    el("p", { class: "who" }, nodeName(query, 80), el("span", { class: "link" }, " and "), nodeName(target, 80)),
    el("p", { class: "quiet" }, `${told}.`),
    el(
      "div",
      { class: "row wrap" },
      field.element,
      el("button", { type: "button", class: "main", id: "label-next", onclick: label }, "Label it"),
      el("button", { type: "button", id: "skip-next", onclick: skip }, "Another"),
    ),
  );
}

function alternatives(found) {
  if (!found.alternatives.length) return null;
  return el(
    "div",
    {},
    el("h3", {}, "Others that explain the pairs as well"),
    el(
      "ol",
      { class: "alternatives", start: 2 },
      found.alternatives.map((other) => {
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
