// One node: its attributes, its neighbours by relation, their picture, and what is similar to it by which meta-path.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { useMemo, useState } from "preact/hooks";
import { fitSpots, useRoom } from "./drawing.jsx";
import { get, graphPath, useAnswer } from "./requests.js";
import { atNode, atSearch, linkTo } from "./store.js";
import {
  article,
  Bar,
  count,
  isNamed,
  labelOf,
  metapathWords,
  NodeName,
  Problem,
  score,
  shown,
  TypeChip,
  Waiting,
} from "./words.jsx";

const FEW = 8;
const MANY = 60;
const MOST_DRAWN = 60;

/** A link to a node, wherever the page names one. */
export function NodeLink({ node, most = 60, withId = false }) {
  return (
    <a class="node" href={linkTo(atNode(node))}>
      <NodeName node={node} most={most} withId={withId} />
    </a>
  );
}

export function NodePage({ state, types }) {
  const { graph, query: id, queryType: type } = state;
  const similar = useAnswer(["similar", graph, type, id], (signal) =>
    get(graphPath(graph, "/similar"), { node_type: type, query: id, k: 3, limit: 9 }, signal),
  );
  return (
    <div class="node-page">
      <NodeCard state={state} types={types} />
      <section aria-labelledby="similar-title" aria-busy={similar.isLoading} class="similar">
        <h2 id="similar-title">Similar by …</h2>
        {similar.isLoading && <Waiting text="Searching along the promising meta-paths" />}
        {similar.error && <Problem error={similar.error} retry={similar.retry} />}
        {similar.data && <SimilarCards answer={similar.data} type={type} />}
      </section>
    </div>
  );
}

function SimilarCards({ answer, type }) {
  const { metapaths, too_large: tooLarge, query } = answer;
  if (!metapaths.length)
    return <p class="empty">No meta-path out and back leads from this {shown(type, 40)} to another one.</p>;
  return (
    <>
      <ul class="cards">
        {metapaths.map((card) => (
          <SimilarCard key={card.metapath} card={card} query={query} />
        ))}
      </ul>
      {tooLarge > 0 && (
        <p class="quiet">
          {count(tooLarge, "longer meta-path")} would take long and {tooLarge === 1 ? "is" : "are"} left out; build one
          to search it.
        </p>
      )}
    </>
  );
}

function SimilarCard({ card, query }) {
  const words = metapathWords(card.metapath, card.node_types);
  const all = `${card.more ? "more than " : ""}${count(card.targets, "hit")}`;
  const tied =
    card.ties > 1
      ? `, ${card.ties === card.targets ? "all" : count(card.ties)} tie at ${score(card.hits[0].score)}`
      : "";
  return (
    <li class="card">
      <h3>
        <a href={linkTo(atSearch(query, card.metapath))}>{words}</a>
      </h3>
      <p class="quiet path">{shown(card.metapath, 90)}</p>
      <ol class="top">
        {card.hits.map((hit) => (
          <li key={hit.id}>
            <a class="hit-link" href={linkTo(atSearch(query, card.metapath, String(hit.id)))} title="Why?">
              <NodeName node={hit} most={50} withId={false} />
              <Bar share={hit.score / (card.hits[0].score || 1)} />
              <span class="score">{score(hit.score)}</span>
            </a>
          </li>
        ))}
      </ol>
      <p class="quiet">
        {all}
        {tied}
      </p>
    </li>
  );
}

/** The card of a node. */
function NodeCard({ state, types }) {
  const { graph, query: id, queryType: type } = state;
  const [limit, setLimit] = useState(FEW);
  const [isDrawn, setDrawn] = useState(false);
  const wanted = isDrawn ? MANY : limit;
  const {
    data: node,
    error,
    retry,
    isLoading,
  } = useAnswer(
    ["node", graph, type, id, wanted],
    (signal) => get(graphPath(graph, "/node"), { node_type: type, id, limit: wanted }, signal),
    `${graph}\n${type}\n${id}`,
  );
  if (error) return <Problem error={error} retry={retry} />;
  if (!node)
    return (
      <section class="node-card" aria-busy="true">
        <Waiting text="Looking up the node" />
      </section>
    );
  const attributes = Object.entries(node.attributes).filter(([, value]) => value !== null && value !== "");
  const hidden = node.links.some((link) => link.degree > link.neighbours.length);
  return (
    <section class="node-card" aria-labelledby="node-title" aria-busy={isLoading}>
      <div class="title">
        <TypeChip type={type} types={types} />
        <h1 id="node-title" tabindex={-1}>
          <bdi>{shown(labelOf(node), 200)}</bdi>
        </h1>
        {isNamed(node) && <bdi class="id">{shown(node.id, 120)}</bdi>}
      </div>
      {attributes.length > 0 && (
        <dl class="attributes">
          {attributes.map(([name, value]) => (
            <div key={name}>
              <dt>{shown(name, 40)}</dt>
              <dd>
                <bdi>{shown(String(value), 120)}</bdi>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {!node.links.length && <p class="quiet">No edge leads to or from this {shown(type, 40)}.</p>}
      <dl class="links">
        {node.links.map((link) => (
          <div key={`${link.link} ${link.node_type}`}>
            <dt>
              <span class="degree">{count(link.degree, shown(link.node_type, 30))}</span>{" "}
              <span class="quiet">{shown(link.link, 40)}</span>
            </dt>
            <dd>
              {link.neighbours.slice(0, isDrawn ? FEW : wanted).map((other) => (
                <NodeLink key={other.id} node={{ ...other, node_type: link.node_type }} most={40} />
              ))}
              {link.degree > Math.min(link.neighbours.length, isDrawn ? FEW : wanted) && (
                <span class="quiet">
                  and {count(link.degree - Math.min(link.neighbours.length, isDrawn ? FEW : wanted))} more
                </span>
              )}
            </dd>
          </div>
        ))}
      </dl>
      <div class="tools">
        {node.links.length > 0 && (
          <button type="button" aria-expanded={isDrawn} onClick={() => setDrawn(!isDrawn)}>
            {isDrawn ? "Hide the picture" : "Draw its neighbourhood"}
          </button>
        )}
        {hidden && !isDrawn && limit === FEW && (
          <button type="button" onClick={() => setLimit(MANY)}>
            List more neighbours
          </button>
        )}
        <a class="button" href={linkTo({ view: "relate", target: null, targetType: null })}>
          How is it related to …?
        </a>
        <a class="button" href={linkTo({ build: true, path: shown(type, 200) })}>
          Build a meta-path
        </a>
      </div>
      {isDrawn && <Neighbourhood node={node} types={types} />}
    </section>
  );
}

/** Choose at most MOST_DRAWN neighbours, an equal number of each relation. */
function chooseDrawn(links) {
  const lists = links.map((link) =>
    link.neighbours.map((one) => ({ ...one, link: link.link, node_type: link.node_type })),
  );
  const drawn = new Map();
  for (let place = 0; drawn.size < MOST_DRAWN && lists.some((list) => place < list.length); place += 1)
    for (const list of lists)
      if (place < list.length && drawn.size < MOST_DRAWN)
        drawn.set(`${list[place].node_type}\n${list[place].id}`, list[place]);
  return [...drawn.values()];
}

/** Place a node in the middle and its neighbours around it, those of one type together. */
function placeNeighbours(node, width, height) {
  const others = chooseDrawn(node.links);
  const kinds = [...new Set(others.map((one) => one.node_type))];
  const spots = [{ ...node, x: width / 2, y: height / 2 }, ...others].map((one, place) => {
    const angle = (2 * Math.PI * kinds.indexOf(one.node_type)) / (kinds.length || 1);
    const [homeX, homeY] = place ? [0.36 * width * Math.cos(angle), 0.36 * height * Math.sin(angle)] : [0, 0];
    return { ...one, place, homeX: width / 2 + homeX, homeY: height / 2 + homeY };
  });
  forceSimulation(spots)
    .force(
      "link",
      forceLink(spots.slice(1).map((spot) => ({ source: 0, target: spot.place })))
        .distance(width / 5)
        .strength(0.1),
    )
    .force("charge", forceManyBody().strength(-80))
    .force("x", forceX((spot) => spot.homeX).strength(0.14))
    .force("y", forceY((spot) => spot.homeY).strength(0.16))
    .force("collide", forceCollide(20))
    .stop()
    .tick(260);
  fitSpots(spots, width, height);
  return spots;
}

function Neighbourhood({ node, types }) {
  const room = useRoom();
  const height = Math.max(320, Math.min(480, room.width * 0.8));
  const spots = useMemo(() => (room.width ? placeNeighbours(node, room.width, height) : []), [node, room.width]);
  const total = node.links.reduce((sum, link) => sum + link.degree, 0);
  const [centre] = spots;
  return (
    <figure class="neighbourhood" ref={room.place}>
      <div class="canvas">
        <svg
          viewBox={`0 0 ${room.width} ${height}`}
          width={room.width}
          height={height}
          class="map"
          role="group"
          aria-label={`${count(Math.max(0, spots.length - 1), "neighbour")} of ${isolate(node)}`}
        >
          {spots.slice(1).map((spot) => (
            <line key={spot.place} class="line" x1={centre.x} y1={centre.y} x2={spot.x} y2={spot.y} />
          ))}
          {[...spots].reverse().map((spot) => (
            <a
              key={spot.place}
              href={linkTo(atNode(spot))}
              class={`spot t${types.indexOf(spot.node_type) % 8}`}
              transform={`translate(${spot.x} ${spot.y})`}
              aria-label={`${spot.node_type} ${shown(labelOf(spot), 80)}`}
            >
              <title>{`${spot.node_type} ${shown(labelOf(spot), 200)}${spot.link ? ` (${spot.link})` : ""}`}</title>
              <circle r={spot.place ? 7 : 12} />
              <text y={spot.place ? 20 : 27} class={spot.place ? "" : "centre"}>
                {shown(labelOf(spot), spot.place ? 16 : 30)}
              </text>
            </a>
          ))}
        </svg>
      </div>
      <figcaption class="quiet">
        {total > spots.length - 1
          ? `${count(Math.max(0, spots.length - 1))} of ${count(total)} neighbours, an equal number of each relation.`
          : "All its neighbours."}{" "}
        Choose one to go there.
      </figcaption>
    </figure>
  );
}

const isolate = (node) => shown(labelOf(node), 80);

/** Say what to type, in the words of the graph. */
export function promptFor(schema) {
  const names = schema.node_types.map((type) => shown(type.node_type, 24));
  const [first = "node", second] = names;
  return `${article(first)} ${first}${second ? `, ${article(second)} ${second}` : ""}${names.length > 2 ? " …" : ""}`;
}
