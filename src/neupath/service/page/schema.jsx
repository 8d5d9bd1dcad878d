// Draws the schema: node types and relations, laid out by dagre, so that a line touches no type but its own two.

import dagre from "@dagrejs/dagre";
import { useMemo } from "preact/hooks";
import { count, shown } from "./words.jsx";

const LETTER = 7.4;
const SMALL = 6.2;
const HEIGHT = 44;
const MOST_NAMES = 2;

/** Join the relations between two types into one line, whichever way they point. */
function joinRelations(relations) {
  const lines = new Map();
  for (const relation of relations) {
    const [a, b] = [relation.source, relation.target].sort();
    const key = JSON.stringify([a, b]);
    const line = lines.get(key) ?? { key, a, b, relations: [] };
    line.relations.push(relation);
    lines.set(key, line);
  }
  return [...lines.values()];
}

function lineLabel({ relations }) {
  const names = [...new Set(relations.map((relation) => relation.name))];
  if (names.length <= MOST_NAMES) return names.map((name) => shown(name, 22)).join(", ");
  return `${shown(names[0], 18)} + ${names.length - 1} more`;
}

function describeLine({ relations }) {
  return relations.map((one) => `${one.source} ${one.name} ${one.target}: ${count(one.edges, "edge")}`).join("\n");
}

/** Place types and lines; `rankdir` is TB for a narrow place, LR for a wide one. */
export function layOut(schema, rankdir) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir, nodesep: 26, ranksep: rankdir === "TB" ? 30 : 44, edgesep: 14, marginx: 14, marginy: 14 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const type of schema.node_types) {
    const width = Math.max(64, LETTER * Math.min(24, type.node_type.length) + 26);
    graph.setNode(type.node_type, { width, height: HEIGHT });
  }
  const lines = joinRelations(schema.relations);
  for (const line of lines.filter(({ a, b }) => a !== b)) {
    const label = lineLabel(line);
    graph.setEdge(line.a, line.b, { width: SMALL * label.length + 10, height: 16, labelpos: "c" }, line.key);
  }
  dagre.layout(graph);
  const { width, height } = graph.graph();
  return {
    width,
    height,
    types: schema.node_types.map((type) => ({ ...type, ...graph.node(type.node_type) })),
    lines: lines
      .filter(({ a, b }) => a !== b)
      .map((line) => ({ ...line, ...graph.edge({ v: line.a, w: line.b, name: line.key }) })),
    loops: lines.filter(({ a, b }) => a === b),
  };
}

/** A path through points with rounded corners; it stays as close to them as a straight line. */
function rounded(points) {
  const [first, ...rest] = points;
  const parts = rest.slice(0, -1).map((point, place) => {
    const next = rest[place + 1];
    const end = place === rest.length - 2 ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    return `Q${point.x} ${point.y} ${end.x} ${end.y}`;
  });
  return `M${first.x} ${first.y}${parts.join("") || `L${rest[0].x} ${rest[0].y}`}`;
}

/**
 * The schema as a picture. `walked` are the types of the meta-path so far, `next` the steps that can follow it,
 * `choose(type)` is called for a type; without it the picture is only looked at.
 */
export function SchemaPicture({ schema, walked = [], next = null, choose = null, isNarrow = false }) {
  const many = schema.node_types.length > 8;
  const placed = useMemo(() => layOut(schema, isNarrow || !many ? "TB" : "LR"), [schema, isNarrow]);
  const possible = next && new Set(next.map((option) => option.node_type));
  const steps = new Set(walked.slice(1).map((type, place) => JSON.stringify([walked[place], type].sort())));
  const { width, height } = placed;
  return (
    <div class="canvas schema-canvas" tabIndex={0} role="region" aria-label="Schema">
      <svg class="schema" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="group"
        aria-label={`${count(schema.node_types.length, "node type")}, ${count(schema.relations.length, "relation")}`}>
        {placed.lines.map((line) => (
          <g key={line.key} class={`relation ${steps.has(line.key) ? "walked" : ""}`}>
            <title>{describeLine(line)}</title>
            <path class="line" d={rounded(line.points)} />
            <rect class="paper" x={line.x - line.width / 2 + 3} y={line.y - 8} width={line.width - 6} height={16} />
            <text class="label" x={line.x} y={line.y + 4}>{lineLabel(line)}</text>
          </g>
        ))}
        {placed.types.map((type, place) => (
          <SchemaType key={type.node_type} type={type} colour={place % 8} order={placesOf(type.node_type, walked)}
            loops={placed.loops.find((loop) => loop.a === type.node_type)} isPossible={!possible || possible.has(type.node_type)}
            choose={choose} />
        ))}
      </svg>
    </div>
  );
}

const placesOf = (type, walked) => walked.flatMap((one, place) => (one === type ? [place + 1] : []));

function SchemaType({ type, colour, order, loops, isPossible, choose }) {
  const { node_type: name, nodes, x, y, width, height } = type;
  const act = choose && (() => choose(name));
  const onKeyDown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };
  const loop = loops ? `, ${loops.relations.map((one) => one.name).join(", ")} among themselves` : "";
  const label = `${name}, ${count(nodes, "node")}${loop}${order.length ? `, step ${order.join(" and ")}` : ""}`;
  const controls = act ? { role: "button", tabIndex: 0, onClick: act, onKeyDown, "aria-disabled": !isPossible } : { role: "img" };
  return (
    <g class={`type-box t${colour} ${isPossible ? "possible" : ""} ${act ? "active" : ""}`} data-type={name}
      transform={`translate(${x} ${y})`} aria-label={label} {...controls}>
      <title>{label}</title>
      {loops && <path class="line" d={`M${width / 2 - 16} ${-height / 2}c0 -14 30 -14 26 10q-2 6 -10 8`} />}
      <rect x={-width / 2} y={-height / 2} width={width} height={height} rx="8" />
      <text class="label" y={-2}>{shown(name, 24)}</text>
      <text class="count" y={14}>{count(nodes)}{loops ? " ↻" : ""}</text>
      {order.length > 0 && (
        <g class="order" transform={`translate(${-width / 2} ${-height / 2})`}>
          <rect x={-8 - 4 * (order.length - 1)} y={-8} width={16 + 8 * (order.length - 1)} height={16} rx="8" />
          <text y={4}>{order.join("·")}</text>
        </g>
      )}
    </g>
  );
}

/** All relations as a table, for schemas that no picture shows well, and for screen readers. */
export function SchemaTable({ schema }) {
  return (
    <table class="relations">
      <thead><tr><th scope="col">From</th><th scope="col">Relation</th><th scope="col">To</th><th scope="col">Edges</th></tr></thead>
      <tbody>
        {schema.relations.map((one) => (
          <tr key={`${one.source} ${one.name} ${one.target}`}>
            <td>{shown(one.source, 40)}</td><td>{shown(one.name, 60)}</td><td>{shown(one.target, 40)}</td><td class="count">{count(one.edges)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
