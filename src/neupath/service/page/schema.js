// Schema: the types and relations of a graph as a picture whose types, clicked in turn, make a meta-path.

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

/** Place types in rows by their distance from one that is far from the others. */
export function layOut(schema) {
  const names = schema.node_types.map((type) => type.node_type);
  const beside = new Map(names.map((name) => [name, new Set()]));
  for (const { source, target } of schema.steps) beside.get(source).add(target);
  const alone = names.filter((name) => [...beside.get(name)].every((other) => other === name));
  const rows = [];
  const placed = new Set(alone);
  while (placed.size < names.length) {
    const left = names.filter((name) => !placed.has(name));
    const found = levelsFrom(farthest(left[0], beside), beside);
    for (const level of found) level.forEach((name) => placed.add(name));
    rows.push(...found);
  }
  return spread([...rows, alone].filter((level) => level.length).flatMap(split));
}

function levelsFrom(start, beside) {
  const levels = [[start]];
  const seen = new Set([start]);
  for (;;) {
    const next = [...new Set(levels.at(-1).flatMap((name) => [...beside.get(name)]))].filter((name) => !seen.has(name));
    if (!next.length) return levels;
    next.forEach((name) => seen.add(name));
    levels.push(next);
  }
}

function farthest(start, beside) {
  const ends = levelsFrom(start, beside).at(-1);
  return ends.reduce((best, name) => (levelsFrom(name, beside).length > levelsFrom(best, beside).length ? name : best));
}

function widthOf(name) {
  return Math.min(170, Math.max(92, 8.4 * Array.from(shown(name, 18)).length + 40));
}

/** Break a level into rows whose types stand side by side. */
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
    const odd = row.length === 1 && rows.length > 4 && y % 2 ? 0.2 * WIDTH : 0; // so that a long chain bends
    const space = (WIDTH - row.reduce((sum, name) => sum + widthOf(name), 0)) / row.length;
    let left = space / 2 + Math.min(odd, space / 2);
    for (const name of row) {
      places.set(name, { x: left + widthOf(name) / 2, y: ROW * y + PILL / 2 + 8 });
      left += widthOf(name) + space;
    }
  });
  return { places, height: ROW * (rows.length - 1) + PILL + 16 };
}

/** Draw a schema; `told` is the meta-path so far, `step(option)` goes on, `refuse(type)` hears what cannot follow. */
export function drawSchema(schema, told, step, refuse) {
  const { places, height } = layOut(schema);
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`,
    class: "schema",
    role: "group",
    "aria-label": "Schema: choose types in turn",
  });
  const offered = (matches) => told.next.find(matches);
  const walked = new Set(
    (told.node_types ?? []).slice(1).map((type, i) => [type, told.node_types[i]].sort().join("\n")),
  );
  const bundles = byEnds(schema.relations);
  const taken = [...places].map(([name, { x, y }]) => boxAt(x, y, widthOf(name), PILL));
  for (const [key, relations] of bundles) {
    const option = offered((next) => next.link !== null && leadsAlong(next, relations, key.split("\n"), told));
    const parts = { option, walked: walked.has(key), crowded: bundles.size > MANY };
    picture.append(drawRelation(relations, places, taken, parts, step));
  }
  schema.node_types.forEach((type, index) => {
    const option = offered((next) => next.node_type === type.node_type);
    const positions = (told.node_types ?? []).flatMap((name, i) => (name === type.node_type ? [i + 1] : []));
    picture.append(drawType(type, index, places.get(type.node_type), positions, option, step, refuse));
  });
  return picture;
}

/** Whether a step goes along a bundle: by one of its relations from where the meta-path ends, or by all at once. */
function leadsAlong(next, relations, ends, told) {
  const from = told.node_types?.at(-1) ?? told.text?.trim();
  if (!ends.includes(next.node_type) || (from && !ends.includes(from))) return false;
  if (ends[0] !== ends[1] && from === next.node_type) return false;
  const [{ name }] = relations;
  return relations.length > 1 || [`-${name}->`, `<-${name}-`, `-${name}-`].includes(next.link);
}

/** Gather the relations that join the same two types. */
function byEnds(relations) {
  const found = new Map();
  for (const relation of relations) {
    const key = [relation.source, relation.target].sort().join("\n");
    found.set(key, [...(found.get(key) ?? []), relation]);
  }
  return found;
}

function drawType(type, index, { x, y }, positions, option, step, refuse) {
  const name = shown(type.node_type, 18);
  const width = widthOf(type.node_type);
  const order = positions.length ? `; position ${positions.join(" and ")} of the meta-path` : "";
  const act = () => (option ? step(option) : refuse(type.node_type));
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
    svg("title", {}, `${shown(type.node_type)}: ${count(type.nodes, "node")}${option ? "; click to go on to it" : ""}`),
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

/** Draw the relations that join two types as one line, with a label where there is room for it. */
function drawRelation(relations, places, taken, { option, walked, crowded }, step) {
  const [first] = relations;
  const [from, to] = [places.get(first.source), places.get(first.target)];
  const others = [...places].filter(([, place]) => place !== from && place !== to);
  const pills = others.map(([name, { x, y }]) => boxAt(x, y, widthOf(name), PILL));
  const curve = from === to ? loop(from) : around(from, to, pills);
  const told = relations.map(describeRelation);
  const act = () => option && step(option);
  const able = option
    ? {
        role: "button",
        tabindex: 0,
        "data-key": relations.map((one) => `${one.source}\n${one.name}\n${one.target}`).join("\n\n"),
        "aria-label": `follow ${told.join("; ")}`,
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
    { class: `relation${walked ? " walked" : ""}${option ? " possible" : ""}`, ...able },
    svg("title", {}, told.join("\n")),
    svg("path", { d: curve.d, class: "line" }),
    drawLabel(label, edges, curve, taken),
  );
}

function describeRelation({ source, name, target, edges }) {
  const [from, word, to] = [source, name, target].map((text) => shown(text, 40));
  return `${from} ${word} ${to}: ${count(edges, "edge")}`;
}

/** Write a label on its curve where it covers no type and no other label; without such a place its title has to do. */
function drawLabel(label, edges, curve, taken) {
  const [width, height] = [LETTER * Math.max(label.length, edges.length), edges ? 30 : 15];
  const spots = ALONG.map(curve.at).map(({ x, y }) => ({ x: Math.min(WIDTH - width / 2, Math.max(width / 2, x)), y }));
  const free = spots.find(({ x, y }) => !taken.some((other) => overlap(boxAt(x, y, width, height), other)));
  if (!free) return null;
  taken.push(boxAt(free.x, free.y, width, height));
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

/** Return the straightest curve between two places that runs through no other type, or the straight one. */
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

/** Put a picture where another was, and leave the focus where it was. */
export function showSchema(picture) {
  refill(at("schema"), [picture]);
}

/** Say what a graph holds in a line. */
export function summary(graph) {
  return el(
    "p",
    { class: "quiet" },
    `${count(graph.nodes, "node")} of ${count(graph.node_types.length, "type")}, ${count(graph.edges, "edge")}`,
  );
}
