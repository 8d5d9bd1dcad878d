// The ranked list of hits: ties together, marks that stay lit, and moves when the meaning changes.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Bar, count, isNamed, isolated, labelOf, score, shown } from "./words.jsx";

const MOVE = { duration: 420, easing: "cubic-bezier(.2,.7,.2,1)" };
const FEW_TIES = 3;

/** Give each hit the rank that it shares with hits of the same score, and how many those are. */
function withTies(hits) {
  const sizes = new Map();
  for (const hit of hits) sizes.set(hit.score, (sizes.get(hit.score) ?? 0) + 1);
  let first = 1;
  return hits.map((hit, place) => {
    if (!place || hits[place - 1].score !== hit.score) first = hit.rank;
    return { ...hit, shared: first, ties: sizes.get(hit.score), isFirstTie: first === hit.rank };
  });
}

/** Remember the ranks that the last meaning gave, while the query stays the same. */
export function useMoves(subject, meaning, hits) {
  const memory = useRef({ subject: null, meaning: null, ranks: null, before: null }).current;
  if (hits && (memory.subject !== subject || memory.meaning !== meaning)) {
    memory.before =
      memory.subject === subject && memory.ranks ? { meaning: memory.meaning, ranks: memory.ranks } : null;
    Object.assign(memory, { subject, meaning });
  }
  if (hits) memory.ranks = new Map(hits.map((hit) => [String(hit.id), hit.rank]));
  return memory.subject === subject ? memory.before : null;
}

function useAnimation(list, hits, before) {
  const tops = useRef(new Map());
  useLayoutEffect(() => {
    const rows = [...list.current.querySelectorAll(".hit")];
    const places = new Map(rows.map((row) => [row.dataset.id, row.offsetTop]));
    if (before && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      for (const row of rows) {
        const by = tops.current.has(row.dataset.id) ? tops.current.get(row.dataset.id) - row.offsetTop : null;
        if (by) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], MOVE);
        else if (by === null) row.animate([{ opacity: 0 }, { opacity: 1 }], MOVE);
      }
    }
    tops.current = places;
  }, [hits]);
}

/**
 * The list. `choose(hit)` explains a hit, `mark(hit, value)` labels it 1, 0 or null; `marks` are the labels by id, and
 * `other` the ranks in the list beside it. `add(hit)` adds it to the query, by its button or a click with Ctrl.
 */
export function HitList({ side, label, hits, k, chosen, before, marks, choose, mark, add, other, evidence }) {
  const list = useRef(null);
  const [whole, setWhole] = useState(null); // the hits whose last tie is shown whole
  const all = withTies(hits).slice(0, k);
  const [last] = all.slice(-1);
  // where more tie at the end than a list has rows, which of them it shows says nothing: a few do
  const hidden =
    whole !== hits && last?.shared > 1 && last.ties > k ? Math.max(0, k - (last.shared - 1) - FEW_TIES) : 0;
  const ranked = all.slice(0, all.length - hidden);
  useAnimation(list, hits, before);
  const best = Math.max(0, ...hits.map((hit) => hit.score));
  const names = new Map();
  for (const hit of ranked) names.set(labelOf(hit), (names.get(labelOf(hit)) ?? 0) + 1);
  return (
    <ol id={`hits-${side}`} ref={list} class="hits" aria-label={label}>
      {ranked.flatMap((hit) => [
        hit.isFirstTie && hit.ties >= FEW_TIES ? (
          <TieHead key={`tie ${hit.shared}`} hit={hit} listed={hits.length} />
        ) : null,
        <Hit
          key={hit.id}
          hit={hit}
          best={best}
          isChosen={String(hit.id) === chosen}
          before={before}
          marked={marks?.get(String(hit.id))}
          choose={choose}
          mark={mark}
          add={add}
          other={other}
          evidence={evidence?.(hit)}
          isAmbiguous={names.get(labelOf(hit)) > 1}
        />,
      ])}
      {hidden > 0 && (
        <li class="tie-head">
          <button type="button" class="more-ties" onClick={() => setWhole(hits)}>
            Show {count(hidden)} more of those that tie
          </button>
        </li>
      )}
    </ol>
  );
}

/** Say how many hits share a score; where the list ends with them, there may be more. */
function TieHead({ hit, listed }) {
  const isOpen = hit.shared + hit.ties - 1 === listed && listed >= 100;
  return (
    <li class="tie-head">
      {isOpen ? `${count(hit.ties)} or more` : count(hit.ties)} tie at {score(hit.score)}; they are in the order of the
      graph
    </li>
  );
}

function Hit({ hit, best, isChosen, before, marked, choose, mark, add, other, evidence, isAmbiguous }) {
  const tie = hit.ties > 1 ? "tied at rank " : "rank ";
  const onClick = (event) => (add && (event.ctrlKey || event.metaKey) ? add(hit) : choose(hit));
  return (
    <li class={`hit ${isChosen ? "chosen" : ""}`} data-id={hit.id}>
      <button type="button" class="open" aria-pressed={isChosen} onClick={onClick}>
        <span class="rank">
          <span aria-hidden="true">{hit.ties > 1 ? `=${hit.shared}` : hit.shared}</span>
          <span class="unseen">
            {tie}
            {hit.shared},{" "}
          </span>
        </span>
        {before && <Move hit={hit} before={before} />}
        <span class="who">
          <bdi class="name" title={shown(labelOf(hit), 400)}>
            {shown(labelOf(hit), 160)}
          </bdi>
          {isNamed(hit) && <bdi class={`id ${isAmbiguous ? "needed" : ""}`}>{shown(hit.id, 160)}</bdi>}
        </span>
        {evidence && (
          <span class="p-value" title={evidence.why}>
            p {evidence.p === null ? "–" : evidence.p < 0.001 ? "< 0.001" : evidence.p.toFixed(3)}
            {evidence.p === null && <span class="unseen"> {evidence.why}</span>}
          </span>
        )}
        <Bar share={best > 0 ? hit.score / best : 0} />
        <span class="score">{score(hit.score)}</span>
        {other && <Elsewhere rank={other.get(String(hit.id))} />}
      </button>
      {(mark || add) && (
        <span class="judge">
          {mark && <Mark hit={hit} value={1} sign="✓" words="similar" marked={marked} mark={mark} />}
          {mark && <Mark hit={hit} value={0} sign="✕" words="not similar" marked={marked} mark={mark} />}
          {add && (
            <button
              type="button"
              class="add"
              title="Add to the query (Ctrl-click)"
              aria-label={`Add ${isolated(labelOf(hit), 80)} to the query`}
              onClick={() => add(hit)}
            >
              +
            </button>
          )}
          {add && (
            <button
              type="button"
              class="less"
              title="Less like this"
              aria-label={`Less like ${isolated(labelOf(hit), 80)}`}
              onClick={() => add(hit, true)}
            >
              −
            </button>
          )}
        </span>
      )}
    </li>
  );
}

function Mark({ hit, value, sign, words, marked, mark }) {
  const isMarked = marked === value;
  return (
    <button
      type="button"
      class={value ? "yes" : "no"}
      aria-pressed={isMarked}
      title={words}
      aria-label={`Mark ${isolated(labelOf(hit), 80)} as ${words}`}
      onClick={() => mark(hit, isMarked ? null : value)}
    >
      {sign}
    </button>
  );
}

function Move({ hit, before }) {
  const rank = before.ranks.get(String(hit.id));
  const by = rank === undefined ? null : rank - hit.rank;
  const [text, label, kind] =
    by === null
      ? ["new", "new in the list", "new"]
      : by > 0
        ? [`▲${by}`, `moved up ${count(by, "rank")}`, "up"]
        : by < 0
          ? [`▼${-by}`, `moved down ${count(-by, "rank")}`, "down"]
          : ["=", "same rank", "still"];
  return (
    <span class={`move ${kind}`} title={label}>
      <span aria-hidden="true">{text}</span>
      <span class="unseen">{label}, </span>
    </span>
  );
}

function Elsewhere({ rank }) {
  const label = rank === undefined ? "not in the other list" : `rank ${rank} in the other list`;
  return (
    <span class="elsewhere" title={label}>
      <span aria-hidden="true">{rank === undefined ? "–" : `↔${rank}`}</span>
      <span class="unseen"> {label}</span>
    </span>
  );
}

/** How many hits have which score, in ten bins. */
export function Histogram({ hits }) {
  if (hits.length < 3) return null;
  const [high, low] = [hits[0].score, hits.at(-1).score];
  const bins = Array(10).fill(0);
  for (const hit of hits) bins[high > low ? Math.min(9, Math.floor((10 * (hit.score - low)) / (high - low))) : 9] += 1;
  const most = Math.max(...bins);
  const text =
    high > low
      ? `Scores of ${hits.length >= 100 ? "the best " : ""}${count(hits.length, "hit")}, from ${score(low)} to ${score(high)}`
      : `All ${count(hits.length, "hit")} score ${score(high)}`;
  return (
    <figure class="histogram">
      <svg viewBox="0 0 200 36" role="img" aria-label={`${text}; in ten equal steps: ${bins.join(", ")}`}>
        {bins.map((number, place) => (
          <rect key={place} x={place * 20 + 1} y={36 - (34 * number) / most} width={18} height={(34 * number) / most} />
        ))}
      </svg>
      <figcaption class="quiet">{text}.</figcaption>
    </figure>
  );
}
