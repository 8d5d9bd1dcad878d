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

const sizeOf = (type) => ({ width: Math.max(64, LETTER * Math.min(24, type.node_type.length) + 26), height: HEIGHT });

/** Place types and lines; `rankdir` is TB for a narrow place, LR for a wide one. Types without relations come last. */
function layOut(schema, rankdir) {
  const lines = joinRelations(schema.relations);
  const linked = new Set(lines.filter(({ a, b }) => a !== b).flatMap(({ a, b }) => [a, b]));
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir, nodesep: 24, ranksep: rankdir === "TB" ? 30 : 40, edgesep: 14, marginx: 14, marginy: 14 });
  for (const type of schema.node_types.filter((one) => linked.has(one.node_type)))
    graph.setNode(type.node_type, sizeOf(type));
  const joining = lines.filter(({ a, b }) => a !== b);
  for (const line of joining) {
    const width = SMALL * lineLabel(line).length + 10;
    graph.setEdge(line.a, line.b, { width, height: 16, labelpos: "c" }, line.key);
  }
  dagre.layout(graph);
  const placed = { width: 0, height: 0, ...(linked.size ? graph.graph() : {}) };
  const alone = placeAlone(
    schema.node_types.filter((one) => !linked.has(one.node_type)),
    placed,
  );
  const edges = joining.map((line) => ({ ...line, ...graph.edge({ v: line.a, w: line.b, name: line.key }) }));
  const boxes = [...[...linked].map((name) => graph.node(name)), ...edges];
  return {
    width: Math.max(placed.width, alone.width),
    height: alone.height,
    types: schema.node_types.map((type) => ({
      ...type,
      ...(alone.places.get(type.node_type) ?? graph.node(type.node_type)),
    })),
    lines: edges.map((line) => ({
      ...line,
      path: route(line, graph.node(line.a), graph.node(line.b), boxes, rankdir),
    })),
    loops: lines.filter(({ a, b }) => a === b),
  };
}

/** Put types without relations to others in rows below the rest. */
function placeAlone(types, { width, height }) {
  const places = new Map();
  const most = Math.max(width, 420);
  let [x, y, widest] = [14, height + (types.length && height ? 6 : 0), width];
  for (const type of types) {
    const size = sizeOf(type);
    if (x + size.width + 14 > most && x > 14) [x, y] = [14, y + HEIGHT + 14];
    places.set(type.node_type, { x: x + size.width / 2, y: y + 18 + HEIGHT / 2, ...size });
    x += size.width + 14;
    widest = Math.max(widest, x);
  }
  return { places, width: widest, height: types.length ? y + HEIGHT + 36 : height };
}

/**
 * Route a line through the ranks of a layout: straight along each rank it crosses, where dagre has kept a lane free, and
 * curved only in the gaps between ranks, where nothing stands. So it runs through no type and no label but its own.
 */
function route(line, from, to, boxes, rankdir) {
  const [along, across, size] = rankdir === "LR" ? ["x", "y", "width"] : ["y", "x", "height"];
  const reach = (centre) =>
    Math.max(0, ...boxes.filter((box) => Math.abs(box[along] - centre) < 1).map((box) => box[size] / 2));
  const [first, last] = from[along] <= to[along] ? [from, to] : [to, from];
  const inner = line.points
    .slice(1, -1)
    .filter((point) => point[along] > first[along] + 1 && point[along] < last[along] - 1);
  const stops = [first, ...inner.sort((a, b) => a[along] - b[along]), last];
  const at = (s, t) => (rankdir === "LR" ? `${s} ${t}` : `${t} ${s}`);
  const parts = stops.slice(1).map((stop, place) => {
    const before = stops[place];
    const [start, end] = [before[along] + reach(before[along]), stop[along] - reach(stop[along])];
    const middle = (start + end) / 2;
    return `L${at(start, before[across])}C${at(middle, before[across])} ${at(middle, stop[across])} ${at(end, stop[across])}`;
  });
  return `M${at(first[along] + first[size] / 2, first[across])}${parts.join("")}L${at(last[along] - last[size] / 2, last[across])}`;
}

/**
 * The schema as a picture. `walked` are the types of the meta-path so far, `next` the steps that can follow it,
 * `choose(type)` is called for a type; without it the picture is only looked at.
 */
export function SchemaPicture({ schema, walked = [], next = null, choose = null, isNarrow = false, label = "Schema" }) {
  const many = schema.node_types.length > 8;
  const placed = useMemo(() => layOut(schema, isNarrow || !many ? "TB" : "LR"), [schema, isNarrow]);
  const possible = next && new Set(next.map((option) => option.node_type));
  const steps = new Set(walked.slice(1).map((type, place) => JSON.stringify([walked[place], type].sort())));
  const { width, height } = placed;
  return (
    <div class="canvas schema-canvas" tabindex={0} role="region" aria-label={label}>
      <svg
        class="schema"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="group"
        aria-label={`${count(schema.node_types.length, "node type")}, ${count(schema.relations.length, "relation")}`}
      >
        {placed.lines.map((line) => (
          <g key={line.key} class={`relation ${steps.has(line.key) ? "walked" : ""}`}>
            <title>{describeLine(line)}</title>
            <path class="line" d={line.path} />
            <rect class="paper" x={line.x - line.width / 2 + 3} y={line.y - 8} width={line.width - 6} height={16} />
            <text class="label" x={line.x} y={line.y + 4}>
              {lineLabel(line)}
            </text>
          </g>
        ))}
        {placed.types.map((type, place) => (
          <SchemaType
            key={type.node_type}
            type={type}
            colour={place % 8}
            order={placesOf(type.node_type, walked)}
            loops={placed.loops.find((loop) => loop.a === type.node_type)}
            isPossible={!possible || possible.has(type.node_type)}
            choose={choose}
          />
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
  const controls = act ? { role: "button", tabindex: 0, onClick: act, onKeyDown } : { role: "img" };
  return (
    <g
      class={`type-box t${colour} ${isPossible ? "possible" : ""} ${act ? "active" : ""}`}
      data-type={name}
      transform={`translate(${x} ${y})`}
      aria-label={label}
      {...controls}
    >
      <title>{label}</title>
      {loops && <path class="line" d={`M${width / 2 - 16} ${-height / 2}c0 -14 30 -14 26 10q-2 6 -10 8`} />}
      <rect x={-width / 2} y={-height / 2} width={width} height={height} rx="8" />
      <text class="label" y={-2}>
        {shown(name, 24)}
      </text>
      <text class="count" y={14}>
        {count(nodes)}
        {loops ? " ↻" : ""}
      </text>
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
      <thead>
        <tr>
          <th scope="col">From</th>
          <th scope="col">Relation</th>
          <th scope="col">To</th>
          <th scope="col">Edges</th>
        </tr>
      </thead>
      <tbody>
        {schema.relations.map((one) => (
          <tr key={`${one.source} ${one.name} ${one.target}`}>
            <td>{shown(one.source, 40)}</td>
            <td>{shown(one.name, 60)}</td>
            <td>{shown(one.target, 40)}</td>
            <td class="count">{count(one.edges)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
