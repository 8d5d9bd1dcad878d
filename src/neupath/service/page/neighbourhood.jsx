// The picture of a node and its neighbours; choosing one draws its neighbours, too, and offers to search from it.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fitSpots, SpotLabel, useRoom } from "./drawing.jsx";
import { get, graphPath, useAnswer } from "./requests.js";
import { atNode, linkTo } from "./store.js";
import { announce, count, isolated, labelOf, Problem, shown, TypeChip } from "./words.jsx";

const MOST_DRAWN = 60;
const MOST_AT_FIRST = 24;
const MOST_EACH = 12;
/** How many neighbours of each relation the picture of a node needs. */
export const NEIGHBOURS = MOST_AT_FIRST;

const keyOf = (node) => `${node.node_type}\n${node.id}`;

/** Take neighbours in turn from each relation, the heaviest first. */
function inTurn(links) {
  const lists = links.map((link) =>
    link.neighbours.map((one) => ({ ...one, link: link.link, node_type: link.node_type })),
  );
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, place) => lists.flatMap((list) => list.slice(place, place + 1))).flat();
}

/** Collect the nodes and lines of a picture: around a node, then around those that were opened, in their order. */
function collect(node, opened, answers) {
  const spots = new Map([[keyOf(node), { ...node, key: keyOf(node), level: 0, shown: 0 }]]);
  const lines = new Map();
  const drawAround = (centre, links, most) => {
    let added = 0;
    for (const one of inTurn(links)) {
      const key = keyOf(one);
      const isNew = !spots.has(key);
      if (key === centre.key || (isNew && (added >= most || spots.size >= MOST_DRAWN))) continue;
      if (isNew) spots.set(key, { ...one, key, level: centre.level + 1, parent: centre.key, shown: 0 });
      added += isNew ? 1 : 0;
      const ends = [centre.key, key].sort();
      if (!lines.has(ends.join("\n\n")))
        lines.set(ends.join("\n\n"), { source: ends[0], target: ends[1], link: one.link });
    }
    centre.shown = added;
  };
  drawAround(spots.get(keyOf(node)), node.links, MOST_AT_FIRST);
  for (const key of opened)
    if (answers.has(key) && spots.has(key)) drawAround(spots.get(key), answers.get(key).links, MOST_EACH);
  return { spots: [...spots.values()], lines: [...lines.values()] };
}

/** Place a node in the middle, its neighbours of one type together, and theirs around them; `places` are the last ones. */
function placeSpots({ spots, lines }, places, width, height) {
  const kinds = [...new Set(spots.filter((one) => one.level === 1).map((one) => one.node_type))];
  spots.forEach((spot, place) => {
    const angle = (2 * Math.PI * kinds.indexOf(spot.node_type)) / (kinds.length || 1);
    const reach = spot.level === 1 ? 0.36 : 0;
    spot.homeX = width * (0.5 + reach * Math.cos(angle));
    spot.homeY = height * (0.5 + reach * Math.sin(angle));
    const near = places.get(spot.key) ?? places.get(spot.parent);
    if (near) Object.assign(spot, { x: near.x + 8 * Math.cos(place), y: near.y + 8 * Math.sin(place) });
  });
  const isFirst = (line) => [line.source, line.target].some((end) => end.level === 0);
  forceSimulation(spots)
    .force(
      "link",
      forceLink(lines)
        .id((spot) => spot.key)
        .distance((line) => (isFirst(line) ? width / 5 : 56))
        .strength((line) => (isFirst(line) ? 0.1 : 0.5)),
    )
    .force("charge", forceManyBody().strength(-150))
    .force(
      "x",
      forceX((spot) => spot.homeX).strength((spot) => (spot.level > 1 ? 0.03 : 0.1)),
    )
    .force(
      "y",
      forceY((spot) => spot.homeY).strength((spot) => (spot.level > 1 ? 0.03 : 0.12)),
    )
    .force("collide", forceCollide(27))
    .stop()
    .tick(260);
  fitSpots(spots, width, height);
  for (const spot of spots) places.set(spot.key, { x: spot.x, y: spot.y });
  return { spots, lines };
}

export function Neighbourhood({ graph, node, types }) {
  const [opened, setOpened] = useState([]);
  const [chosen, setChosen] = useState(null);
  const answers = useRef(new Map()).current;
  const places = useRef(new Map()).current;
  const room = useRoom();
  const height = Math.max(360, Math.min(560, room.width * 0.95));
  const missing = opened.filter((key) => !answers.has(key));
  const { error } = useAnswer(missing.length ? ["around", graph, missing] : null, async (signal) => {
    for (const key of missing) {
      const [type, id] = [key.slice(0, key.indexOf("\n")), key.slice(key.indexOf("\n") + 1)];
      answers.set(key, await get(graphPath(graph, "/node"), { node_type: type, id, limit: MOST_EACH }, signal));
    }
    return answers.size;
  });
  const ready = opened.filter((key) => answers.has(key));
  const { spots, lines } = useMemo(
    () =>
      room.width ? placeSpots(collect(node, ready, answers), places, room.width, height) : { spots: [], lines: [] },
    [node, ready.join("\n\n"), room.width],
  );
  const selected = spots.find((spot) => spot.key === chosen) ?? null;
  const last = ready.at(-1);
  useEffect(() => {
    const spot = spots.find((one) => one.key === last);
    if (spot) announce(`${count(spot.shown, "more neighbour")} of ${labelOf(spot)} drawn`);
  }, [last]);
  const choose = (spot) => {
    setChosen(spot.key);
    if (!spot.level) return;
    setOpened(opened.includes(spot.key) ? opened.filter((key) => key !== spot.key) : [...opened, spot.key]);
  };
  const total = node.links.reduce((sum, link) => sum + link.degree, 0);
  return (
    <figure class="neighbourhood" ref={room.place}>
      <div class="canvas">
        <svg
          viewBox={`0 0 ${room.width} ${height}`}
          width={room.width}
          height={height}
          class="map"
          role="group"
          aria-label={`${count(Math.max(0, spots.length - 1), "node")} around ${isolated(labelOf(node), 80)}`}
        >
          {lines.map((line) => (
            <line
              key={line.index}
              class="line"
              x1={line.source.x}
              y1={line.source.y}
              x2={line.target.x}
              y2={line.target.y}
            >
              <title>{`${shown(labelOf(line.source), 80)} ${line.link} ${shown(labelOf(line.target), 80)}`}</title>
            </line>
          ))}
          {[...spots].reverse().map((spot) => (
            <Spot
              key={spot.key}
              spot={spot}
              colour={types.indexOf(spot.node_type) % 8}
              isOpen={opened.includes(spot.key)}
              isChosen={spot.key === chosen}
              width={room.width}
              choose={choose}
            />
          ))}
        </svg>
      </div>
      {error && <Problem error={error} />}
      <figcaption class="quiet">
        {selected && selected.level > 0 ? (
          <p class="chosen-node" role="status">
            <TypeChip type={selected.node_type} types={types} /> <bdi>{shown(labelOf(selected), 80)}</bdi>{" "}
            <a class="button" href={linkTo(atNode(selected))}>
              Search from here
            </a>
          </p>
        ) : (
          <p>
            {total > spots.length - 1
              ? `${count(Math.max(0, spots.length - 1))} of ${count(total)} neighbours, an equal number of each relation. `
              : "All its neighbours. "}
            Choose one to draw its neighbours, too.
          </p>
        )}
        {spots.length >= MOST_DRAWN && <p>{MOST_DRAWN} nodes are drawn, and no more fit; close one to open another.</p>}
      </figcaption>
    </figure>
  );
}

function Spot({ spot, colour, isOpen, isChosen, width, choose }) {
  const onKeyDown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(spot);
  };
  const label = `${spot.node_type} ${shown(labelOf(spot), 200)}`;
  return (
    <g
      class={`spot t${colour} ${isChosen ? "chosen" : ""}`}
      data-id={spot.id}
      role="button"
      tabindex={0}
      aria-expanded={spot.level ? isOpen : undefined}
      aria-label={label}
      transform={`translate(${spot.x} ${spot.y})`}
      onClick={() => choose(spot)}
      onKeyDown={onKeyDown}
    >
      <title>{label}</title>
      <circle r={spot.level === 0 ? 12 : isOpen ? 9 : 7} />
      <SpotLabel
        spot={spot}
        y={spot.level ? 20 : 27}
        isCentre={!spot.level}
        width={width}
        most={spot.level ? (width < 500 ? 10 : 16) : 30}
      />
    </g>
  );
}
