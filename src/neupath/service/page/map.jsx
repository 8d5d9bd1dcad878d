// The map of the hits: those are near that are similar to each other, by the same meaning.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { useMemo, useRef } from "preact/hooks";
import { fitSpots, savePng, SpotLabel, useRoom } from "./drawing.jsx";
import { parametersOf } from "./graphs.js";
import { graphPath, post, useAnswer } from "./requests.js";
import { change } from "./store.js";
import { count, labelOf, Problem, score, shown, Waiting } from "./words.jsx";

const NEAREST = 4;

/** Ask for the scores between all nodes of the map, with one request. */
function readScores(graph, meaning, type, ids, signal) {
  const parameters = { ...parametersOf(meaning, type), queries: ids, among: ids, k: ids.length };
  return post(graphPath(graph, "/search"), parameters, signal);
}

function placeHits(nodes, answers, queries, width, height) {
  const places = new Map(nodes.map((node, place) => [String(node.id), place]));
  const lines = new Map();
  answers.forEach((answer, from) => {
    for (const hit of answer.hits.slice(0, NEAREST)) {
      const to = places.get(String(hit.id));
      if (to !== undefined && to !== from)
        lines.set([from, to].sort((a, b) => a - b).join(), {
          source: Math.min(from, to),
          target: Math.max(from, to),
          score: hit.score,
        });
    }
  });
  const edges = [...lines.values()];
  const most = Math.max(1e-12, ...edges.map((edge) => edge.score));
  const spots = nodes.map((node, place) => ({ ...node, place, isQuery: queries.has(String(node.id)) }));
  forceSimulation(spots)
    .force(
      "link",
      forceLink(edges)
        .distance((edge) => 160 - 110 * (edge.score / most))
        .strength((edge) => 0.1 + 0.6 * (edge.score / most)),
    )
    .force("charge", forceManyBody().strength(-190))
    .force("x", forceX(width / 2).strength(0.05))
    .force("y", forceY(height / 2).strength(0.08))
    .force("collide", forceCollide(24))
    .stop()
    .tick(300);
  fitSpots(spots, width, height);
  return { spots, edges, most };
}

export function HitMap({ state, meaning, type, targetType, types, nodes: queries, hits }) {
  const isOneType = type === targetType;
  const nodes = isOneType ? [...queries.map((node) => ({ ...node, score: null })), ...hits] : hits;
  const ids = nodes.map((one) => one.id);
  const { data, error, retry } = useAnswer(isOneType ? ["map", state.graph, meaning, ids] : null, (signal) =>
    readScores(state.graph, meaning, type, ids, signal),
  );
  const room = useRoom();
  const height = Math.max(360, Math.min(560, room.width * 0.7));
  const placed = useMemo(
    () =>
      data && room.width
        ? placeHits(nodes, data, new Set(queries.map((one) => String(one.id))), room.width, height)
        : null,
    [data, room.width],
  );
  return (
    <div ref={room.place}>
      {!isOneType && <p class="empty">A map needs hits of the type of the query.</p>}
      {error && <Problem error={error} retry={retry} />}
      {isOneType && !error && !placed && <Waiting text="Comparing the hits with each other" />}
      {placed && (
        <MapPicture
          placed={placed}
          width={room.width}
          height={height}
          state={state}
          hits={hits}
          colour={types.indexOf(targetType) % 8}
        />
      )}
    </div>
  );
}

function MapPicture({ placed, width, height, state, hits, colour }) {
  const picture = useRef(null);
  const { spots, edges, most } = placed;
  const choose = (spot) => change({ target: spot.isQuery ? null : String(spot.id), side: "a", group: null });
  return (
    <figure class="hit-map">
      <div class="canvas">
        <svg
          ref={picture}
          viewBox={`0 0 ${width} ${height}`}
          width={width}
          height={height}
          class="map"
          role="group"
          aria-label={`${count(hits.length, "hit")} by their mutual scores`}
        >
          {edges.map((edge) => (
            <line
              key={`${edge.source.place} ${edge.target.place}`}
              class="line"
              x1={edge.source.x}
              y1={edge.source.y}
              x2={edge.target.x}
              y2={edge.target.y}
              stroke-width={0.5 + 4 * (edge.score / most)}
            >
              <title>{`${labelOf(edge.source)} and ${labelOf(edge.target)}: ${score(edge.score)}`}</title>
            </line>
          ))}
          {[...spots].reverse().map((spot) => (
            <g
              key={spot.place}
              role="button"
              tabindex={0}
              aria-pressed={String(spot.id) === state.target}
              transform={`translate(${spot.x} ${spot.y})`}
              data-id={spot.id}
              class={`spot t${colour} ${String(spot.id) === state.target ? "chosen" : ""}`}
              onClick={() => choose(spot)}
              aria-label={
                spot.isQuery
                  ? `${shown(labelOf(spot), 80)}, the query`
                  : `${shown(labelOf(spot), 80)}, rank ${spot.rank}, score ${score(spot.score)}`
              }
              onKeyDown={(event) =>
                (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(spot))
              }
            >
              <title>{`${shown(labelOf(spot), 200)}${spot.isQuery ? "" : `: ${score(spot.score)}`}`}</title>
              <circle r={spot.isQuery ? 12 : 5 + 6 * (spot.score / (hits[0]?.score || 1))} />
              <SpotLabel
                spot={spot}
                y={spot.isQuery ? 26 : 21}
                isCentre={spot.isQuery}
                width={width}
                most={width < 500 && !spot.isQuery ? 9 : 18}
              />
            </g>
          ))}
        </svg>
      </div>
      <figcaption class="details quiet">
        <span>
          Lines join each hit to the {NEAREST} most similar to it; the thickest line is a score of {score(most)}.
        </span>
        <button type="button" onClick={() => savePng(picture.current, `map-${state.graph}-${state.query}`)}>
          PNG
        </button>
      </figcaption>
    </figure>
  );
}
