// Schema: the types and relations of a graph as a picture whose types, clicked in turn, make a meta-path.

import { at, count, el, shown, svg } from "./dom.js";

const WIDTH = 360;
const ROW = 96;
const MOST_A_ROW = 3;
const PILL = 44;
const MANY = 10;

/** Place types in rows by their distance from one that is far from the others. */
export function layOut(schema) {
  const names = schema.node_types.map((type) => type.node_type);
  const beside = new Map(names.map((name) => [name, new Set()]));
  for (const { source, target } of schema.steps) beside.get(source).add(target);
  const rows = [];
  const placed = new Set();
  while (placed.size < names.length) {
    const left = names.filter((name) => !placed.has(name));
    const found = levelsFrom(farthest(left[0], beside), beside);
    for (const level of found) level.forEach((name) => placed.add(name));
    rows.push(...found);
  }
  return spread(rows.flatMap(split));
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

function split(level) {
  const rows = Math.ceil(level.length / MOST_A_ROW);
  const size = Math.ceil(level.length / rows);
  return Array.from({ length: rows }, (_, row) => level.slice(row * size, (row + 1) * size));
}

function spread(rows) {
  const places = new Map();
  rows.forEach((row, y) => {
    const odd = row.length === 1 && rows.length > 4 && y % 2 ? 0.2 : 0; // so that a long chain bends
    row.forEach((name, x) => {
      places.set(name, { x: WIDTH * ((x + 0.5) / row.length + odd), y: ROW * y + PILL / 2 + 8 });
    });
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
  for (const [key, relations] of byEnds(schema.relations)) {
    relations.forEach((relation, place) => {
      const links = [`-${relation.name}->`, `<-${relation.name}-`, `-${relation.name}-`];
      const option = offered((next) => links.includes(next.link) && key.split("\n").includes(next.node_type));
      picture.append(
        drawRelation(
          relation,
          places,
          place - (relations.length - 1) / 2,
          walked.has(key),
          option,
          step,
          schema.relations.length > MANY,
        ),
      );
    });
  }
  schema.node_types.forEach((type, index) => {
    const option = offered((next) => next.node_type === type.node_type);
    const positions = (told.node_types ?? []).flatMap((name, i) => (name === type.node_type ? [i + 1] : []));
    picture.append(drawType(type, index, places.get(type.node_type), positions, option, step, refuse));
  });
  return picture;
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
  const width = Math.min(170, Math.max(92, 8.4 * Array.from(name).length + 40));
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

function drawRelation(relation, places, offset, walked, option, step, crowded) {
  const [from, to] = [places.get(relation.source), places.get(relation.target)];
  const curve = from === to ? loop(from, offset) : bend(from, to, offset);
  const [source, name, target] = [relation.source, relation.name, relation.target].map((word) => shown(word, 40));
  const text = `${source} ${name} ${target}: ${count(relation.edges, "edge")}`;
  const act = () => option && step(option);
  const able = option
    ? {
        role: "button",
        tabindex: 0,
        "aria-label": `follow ${text}`,
        onclick: act,
        onkeydown: (event) => press(event, act),
      }
    : {};
  return svg(
    "g",
    { class: `relation${walked ? " walked" : ""}${option ? " possible" : ""}`, ...able },
    svg("title", {}, text),
    svg("path", { d: curve.d, class: "line" }),
    svg(
      "text",
      { x: curve.x, y: curve.y - (crowded ? 0 : 6), class: "label" },
      `${shown(relation.name, from.x === to.x ? 22 : 13)} ${relation.directed ? arrow(from, to) : ""}`,
      crowded ? null : svg("tspan", { class: "count", x: curve.x, dy: 13 }, count(relation.edges)),
    ),
  );
}

function bend(from, to, offset) {
  const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [dx, dy] = [(-(to.y - from.y) / length) * offset * 60, ((to.x - from.x) / length) * offset * 60];
  return {
    d: `M${from.x} ${from.y}Q${x + dx} ${y + dy} ${to.x} ${to.y}`,
    x: x + dx / 2,
    y: y + dy / 2 + offset * 12 + 4,
  };
}

function loop({ x, y }, offset) {
  const out = 64 + 18 * offset;
  return {
    d: `M${x + 20} ${y - 12}C${x + 150} ${y - out} ${x + 150} ${y + out} ${x + 20} ${y + 12}`,
    x: Math.min(x + 122, WIDTH - 60),
    y: y + 4 + 14 * offset,
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
  const focused = at("schema").contains(document.activeElement) && document.activeElement.dataset.type;
  at("schema").replaceChildren(picture);
  if (focused) [...picture.querySelectorAll(".type")].find((type) => type.dataset.type === focused)?.focus();
}

/** Say what a graph holds in a line. */
export function summary(graph) {
  return el(
    "p",
    { class: "quiet" },
    `${count(graph.nodes, "node")} of ${count(graph.node_types.length, "type")}, ${count(graph.edges, "edge")}`,
  );
}
