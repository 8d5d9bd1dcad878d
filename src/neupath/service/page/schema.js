// Draws the schema: node types and relations. Clicking types one after another builds a meta-path.

import { at, count, el, refill, shown, svg } from "./dom.js";

const WIDTH = 360;
const ROW = 96;
const GAP = 12;
const PILL = 44;
const MANY = 10;
const LETTER = 6.8;
const BENDS = [0, 60, -60, 120, -120, 190, -190, 260, -260];
const STEPS = Array.from({ length: 25 }, (_, place) => place / 24);
const ALONG = [0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73];

/** Place types in rows by their distance from a peripheral type. */
export function layOut(schema) {
  const names = schema.node_types.map((type) => type.node_type);
  const neighbours = new Map(names.map((name) => [name, new Set()]));
  for (const { source, target } of schema.steps) neighbours.get(source).add(target);
  const alone = names.filter((name) => [...neighbours.get(name)].every((other) => other === name));
  const rows = [];
  const placed = new Set(alone);
  while (placed.size < names.length) {
    const left = names.filter((name) => !placed.has(name));
    const levels = levelsFrom(farthest(left[0], neighbours), neighbours);
    for (const level of levels) level.forEach((name) => placed.add(name));
    rows.push(...levels);
  }
  return spread([...rows, alone].filter((level) => level.length).flatMap(split));
}

function levelsFrom(start, neighbours) {
  const levels = [[start]];
  const seen = new Set([start]);
  for (;;) {
    const reached = new Set(levels.at(-1).flatMap((name) => [...neighbours.get(name)]));
    const next = [...reached].filter((name) => !seen.has(name));
    if (!next.length) return levels;
    next.forEach((name) => seen.add(name));
    levels.push(next);
  }
}

function farthest(start, neighbours) {
  const depth = (name) => levelsFrom(name, neighbours).length;
  return levelsFrom(start, neighbours).at(-1).reduce((best, name) => (depth(name) > depth(best) ? name : best));
}

function widthOf(name) {
  return Math.min(170, Math.max(92, 8.4 * Array.from(shown(name, 18)).length + 40));
}

/** Split a level into rows that fit the width. */
function split(level) {
  const rows = [[]];
  let used = 0;
  for (const name of level) {
    if (rows.at(-1).length && used + widthOf(name) > WIDTH) {
      rows.push([]);
      used = 0;
    }
    rows.at(-1).push(name);
    used += widthOf(name) + GAP;
  }
  return rows;
}

function spread(rows) {
  const places = new Map();
  rows.forEach((row, y) => {
    const odd = row.length === 1 && rows.length > 4 && y % 2 ? 0.2 * WIDTH : 0; // zigzag, for a long chain
    const space = (WIDTH - row.reduce((sum, name) => sum + widthOf(name), 0)) / row.length;
    let left = space / 2 + Math.min(odd, space / 2);
    for (const name of row) {
      places.set(name, { x: left + widthOf(name) / 2, y: ROW * y + PILL / 2 + 8 });
      left += widthOf(name) + space;
    }
  });
  return { places, height: ROW * (rows.length - 1) + PILL + 16 };
}

/** Draw a schema; `parsed` is the meta-path, `step(option)` adds a step, `showNoStep(type)` says none leads there. */
export function drawSchema(schema, parsed, step, showNoStep) {
  const { places, height } = layOut(schema);
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`,
    class: "schema",
    role: "group",
    "aria-label": "Schema: choose types one after another",
  });
  const offered = (matches) => parsed.next.find(matches);
  const walked = new Set(
    (parsed.node_types ?? []).slice(1).map((type, i) => [type, parsed.node_types[i]].sort().join("\n")),
  );
  const bundles = byEnds(schema.relations);
  const occupied = [...places].map(([name, { x, y }]) => boxAt(x, y, widthOf(name), PILL));
  for (const [key, relations] of bundles) {
    const option = offered((next) => next.link !== null && leadsAlong(next, relations, key.split("\n"), parsed));
    const parts = { option, walked: walked.has(key), crowded: bundles.size > MANY };
    picture.append(drawRelation(relations, places, occupied, parts, step));
  }
  schema.node_types.forEach((type, index) => {
    const option = offered((next) => next.node_type === type.node_type);
    const positions = (parsed.node_types ?? []).flatMap((name, i) => (name === type.node_type ? [i + 1] : []));
    picture.append(drawType(type, index, places.get(type.node_type), positions, option, step, showNoStep));
  });
  return picture;
}

/** Whether a next step follows one or all of the relations between two types. */
function leadsAlong(next, relations, ends, parsed) {
  const from = parsed.node_types?.at(-1) ?? parsed.text?.trim();
  if (!ends.includes(next.node_type) || (from && !ends.includes(from))) return false;
  if (ends[0] !== ends[1] && from === next.node_type) return false;
  const [{ name }] = relations;
  return relations.length > 1 || [`-${name}->`, `<-${name}-`, `-${name}-`].includes(next.link);
}

/** Group relations by the two types they join. */
function byEnds(relations) {
  const groups = new Map();
  for (const relation of relations) {
    const key = [relation.source, relation.target].sort().join("\n");
    groups.set(key, [...(groups.get(key) ?? []), relation]);
  }
  return groups;
}

function drawType(type, index, { x, y }, positions, option, step, showNoStep) {
  const name = shown(type.node_type, 18);
  const width = widthOf(type.node_type);
  const order = positions.length ? `; position ${positions.join(" and ")} of the meta-path` : "";
  const act = () => (option ? step(option) : showNoStep(type.node_type));
  return svg(
    "g",
    {
      class: `type t${index % 8}${option ? " possible" : ""}${positions.length ? " walked" : ""}`,
      role: "button",
      tabindex: 0,
      transform: `translate(${x} ${y})`,
      "aria-label": `${name}, ${count(type.nodes, "node")}${order}`,
      "aria-disabled": option ? null : "true",
      "data-type": type.node_type,
      "data-key": type.node_type,
      onclick: act,
      onkeydown: (event) => press(event, act),
    },
    svg("title", {}, `${shown(type.node_type)}: ${count(type.nodes, "node")}${option ? "; click to add a step" : ""}`),
    svg("rect", { x: -width / 2, y: -PILL / 2, width, height: PILL, rx: PILL / 2 }),
    svg("text", { class: "label", y: -3 }, name),
    svg("text", { class: "count", y: 13 }, count(type.nodes)),
    positions.length
      ? svg(
          "g",
          { class: "order", transform: `translate(${width / 2 - 4} ${-PILL / 2 + 3})` },
          svg("rect", { x: -5 - 4 * positions.length, y: -9, width: 10 + 8 * positions.length, height: 18, rx: 9 }),
          svg("text", { y: 4 }, positions.slice(0, 4).join("·")),
        )
      : null,
  );
}

/** Draw the relations between two types as one line, with a label if there is room. */
function drawRelation(relations, places, occupied, { option, walked, crowded }, step) {
  const [first] = relations;
  const [from, to] = [places.get(first.source), places.get(first.target)];
  const others = [...places].filter(([, place]) => place !== from && place !== to);
  const pills = others.map(([name, { x, y }]) => boxAt(x, y, widthOf(name), PILL));
  const curve = from === to ? loop(from) : around(from, to, pills);
  const descriptions = relations.map(describeRelation);
  const act = () => option && step(option);
  const attributes = option
    ? {
        role: "button",
        tabindex: 0,
        "data-key": relations.map((one) => `${one.source}\n${one.name}\n${one.target}`).join("\n\n"),
        "aria-label": `follow ${descriptions.join("; ")}`,
        onclick: act,
        onkeydown: (event) => press(event, act),
      }
    : {};
  const label =
    relations.length > 1
      ? `${relations.length} relations`
      : `${shown(first.name, 22)} ${first.directed ? arrow(from, to) : ""}`.trim();
  const edges = crowded ? "" : count(relations.reduce((sum, one) => sum + one.edges, 0));
  return svg(
    "g",
    { class: `relation${walked ? " walked" : ""}${option ? " possible" : ""}`, ...attributes },
    svg("title", {}, descriptions.join("\n")),
    svg("path", { d: curve.d, class: "line" }),
    drawLabel(label, edges, curve, occupied),
  );
}

function describeRelation({ source, name, target, edges }) {
  const [from, word, to] = [source, name, target].map((text) => shown(text, 40));
  return `${from} ${word} ${to}: ${count(edges, "edge")}`;
}

/** Write a label on its curve where it overlaps no type and no other label; if there is no room, return null. */
function drawLabel(label, edges, curve, occupied) {
  const [width, height] = [LETTER * Math.max(label.length, edges.length), edges ? 30 : 15];
  const spots = ALONG.map(curve.at).map(({ x, y }) => ({ x: Math.min(WIDTH - width / 2, Math.max(width / 2, x)), y }));
  const free = spots.find(({ x, y }) => !occupied.some((other) => overlap(boxAt(x, y, width, height), other)));
  if (!free) return null;
  occupied.push(boxAt(free.x, free.y, width, height));
  return svg(
    "text",
    { x: free.x, y: free.y + (edges ? -2 : 4), class: "label" },
    label,
    edges ? svg("tspan", { class: "count", x: free.x, dy: 13 }, edges) : null,
  );
}

function boxAt(x, y, width, height) {
  return { x0: x - width / 2, x1: x + width / 2, y0: y - height / 2, y1: y + height / 2 };
}

function overlap(one, other) {
  return one.x0 < other.x1 && other.x0 < one.x1 && one.y0 < other.y1 && other.y0 < one.y1;
}

/** Return the straightest curve between two places that crosses no other type, or else a straight line. */
function around(from, to, pills) {
  const curves = BENDS.map((by) => bend(from, to, by));
  const isFree = ({ at: spot }) =>
    STEPS.every((t) => !pills.some((pill) => overlap(boxAt(spot(t).x, spot(t).y, 4, 4), pill)));
  return curves.find(isFree) ?? curves[0];
}

function bend(from, to, by) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [dx, dy] = [(-by * (to.y - from.y)) / length, (by * (to.x - from.x)) / length];
  const [x, y] = [(from.x + to.x) / 2 + dx, (from.y + to.y) / 2 + dy];
  const along = (t, a, b, c) => (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t ** 2 * c;
  return {
    d: `M${from.x} ${from.y}Q${x} ${y} ${to.x} ${to.y}`,
    at: (t) => ({ x: along(t, from.x, x, to.x), y: along(t, from.y, y, to.y) }),
  };
}

function loop({ x, y }) {
  const out = 64;
  return {
    d: `M${x + 20} ${y - 12}C${x + 150} ${y - out} ${x + 150} ${y + out} ${x + 20} ${y + 12}`,
    at: (t) => ({ x: x + 110, y: y + 96 * (t - 0.5) }),
  };
}

/** Return the arrow that points from one place to another. */
function arrow(from, to) {
  if (from === to) return "⟲";
  return from.y < to.y ? "↓" : from.y > to.y ? "↑" : from.x < to.x ? "→" : "←";
}

function press(event, act) {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  act();
}

/** Replace the picture and keep the focus. */
export function showSchema(picture) {
  refill(at("schema"), [picture]);
}

/** Describe the size of a graph in one line. */
export function summary(graph) {
  return el(
    "p",
    { class: "quiet" },
    `${count(graph.nodes, "node")} of ${count(graph.node_types.length, "type")}, ${count(graph.edges, "edge")}`,
  );
}
