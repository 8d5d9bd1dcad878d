// Draws path instances in layers, one column per position; nodes and edges that paths share are drawn once, thicker.

import { isolated, labelOf, percent, score, shown, svg } from "./dom.js";

const ROW = 38;
const TOP = 40;
const BOX = 28;
const MIN_COLUMN = 117;
const MAX_THICKNESS = 11;
const LETTER = 7;

/** Merge the paths of an explanation into spots (a node at a position) and lines between spots, with their shares. */
export function layers(types, paths) {
  const spots = new Map();
  const lines = new Map();
  paths.forEach((path, index) => {
    const keys = path.nodes.map((node, position) => `${position} ${typeof node.id} ${node.id}`);
    path.nodes.forEach((node, position) => {
      const spot = spots.get(keys[position]) ?? { node, position, share: 0, paths: new Set() };
      spot.share += path.share;
      spots.set(keys[position], spot.paths.add(index) && spot);
      if (position === 0) return;
      const key = `${keys[position - 1]}\n${keys[position]}`;
      const line = lines.get(key) ?? {
        from: spots.get(keys[position - 1]),
        to: spot,
        link: path.links[position - 1],
        share: 0,
        paths: new Set(),
      };
      line.share += path.share;
      lines.set(key, line.paths.add(index) && line);
    });
  });
  const columns = types.map((_, position) => [...spots.values()].filter((spot) => spot.position === position));
  order(columns, [...lines.values()]);
  return { columns, lines: [...lines.values()] };
}

/** Order each column by the mean row of its neighbours (barycenter heuristic), so that few lines cross. */
function order(columns, lines) {
  columns.forEach((column) => column.sort((a, b) => b.share - a.share).forEach((spot, row) => (spot.row = row)));
  const mean = (spot) => {
    const neighbours = lines.flatMap((line) => (line.from === spot ? [line.to] : line.to === spot ? [line.from] : []));
    const heights = neighbours.map((other) => (other.row + 0.5) / columns[other.position].length);
    return heights.reduce((sum, height) => sum + height, 0) / (heights.length || 1);
  };
  for (let sweep = 0; sweep < 4; sweep += 1) {
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      const means = new Map(column.map((spot) => [spot, mean(spot)]));
      column.sort((a, b) => means.get(a) - means.get(b) || b.share - a.share).forEach((spot, row) => (spot.row = row));
    }
  }
}

/** Draw paths. A type's colour is its index in `kinds`, `total` is the score, `describe(text)` shows details. */
export function drawPaths(types, paths, { total, kinds, room, describe }) {
  const { columns, lines } = layers(types, paths);
  const columnWidth = Math.max(MIN_COLUMN, room / types.length);
  const [width, tallest] = [columnWidth * types.length, Math.max(1, ...columns.map((column) => column.length))];
  const box = Math.min(columnWidth - (columnWidth < 140 ? 20 : 34), 210);
  for (const spot of columns.flat()) {
    spot.x = columnWidth * (spot.position + 0.5);
    spot.y = TOP + ROW * (spot.row + 0.5 + (tallest - columns[spot.position].length) / 2);
  }
  const height = TOP + ROW * tallest + 10;
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: "paths",
    role: "group",
    "aria-label": `${paths.length} paths in ${types.length} columns; arrow keys move between nodes`,
  });
  picture.append(...types.map((type, position) => drawHeading(type, position, columnWidth)));
  const parts = [];
  const focus = (part) => highlight(picture, parts, part?.paths ?? null, part ? part.text : "", describe);
  for (const line of lines) {
    const [from, to] = [line.from, line.to].map((spot) => isolated(labelOf(spot.node), 60));
    const text = `${from} ${line.link} ${to}: ${detail(line, total)}`;
    parts.push(drawLine(line, box, total, { text, focus }));
  }
  for (const spot of columns.flat()) {
    const { node } = spot;
    const text = `${node.node_type} ${isolated(labelOf(node), 200)}${idOf(node)}: ${detail(spot, total)}`;
    parts.push(drawSpot(spot, box, kinds.indexOf(node.node_type) % 8, { text, focus }));
  }
  picture.append(...parts.map((part) => part.element));
  addArrowKeys(columns, focus);
  picture.focusPath = (index) => highlight(picture, parts, index === null ? null : new Set([index]), "", () => {});
  return picture;
}

function drawHeading(type, position, columnWidth) {
  const text = shown(type, Math.floor(columnWidth / LETTER));
  return svg("text", { class: "heading", x: columnWidth * (position + 0.5), y: 20 }, text);
}

function idOf(node) {
  return node.name !== null && node.name !== String(node.id) ? ` (${isolated(node.id, 80)})` : "";
}

function detail(part, total) {
  const paths = part.paths.size === 1 ? "1 path" : `${part.paths.size} paths`;
  return `on ${paths} shown, ${score(part.share)} of the score${total ? `, ${percent(part.share / total)}` : ""}`;
}

function drawLine(line, box, total, { text, focus }) {
  const [x0, x1, y0, y1] = [line.from.x + box / 2, line.to.x - box / 2, line.from.y, line.to.y];
  const middle = (x0 + x1) / 2;
  const thick = 1 + (MAX_THICKNESS - 1) * (total ? Math.min(1, line.share / total) : 0);
  const part = { paths: line.paths, text };
  part.element = svg(
    "path",
    {
      class: "line",
      d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`,
      "stroke-width": thick.toFixed(2),
      onpointerenter: () => focus(part),
      onpointerleave: () => focus(null),
    },
    svg("title", {}, text),
  );
  return part;
}

function drawSpot(spot, box, kind, { text, focus }) {
  const part = { paths: spot.paths, text };
  const most = Math.floor((box - 18) / LETTER);
  part.element = svg(
    "g",
    {
      class: `spot t${kind}`,
      transform: `translate(${spot.x} ${spot.y})`,
      role: "img",
      tabindex: -1,
      "aria-label": text,
      onpointerenter: () => focus(part),
      onpointerleave: () => focus(null),
      onfocus: () => focus(part),
      onblur: () => focus(null),
    },
    svg("title", {}, text),
    svg("rect", { x: -box / 2, y: -BOX / 2, width: box, height: BOX, rx: 6 }),
    svg("text", { y: 4 }, shown(labelOf(spot.node), most)),
  );
  spot.element = part.element;
  return part;
}

/** Make one node reachable by Tab and the others by the arrow keys (roving tabindex). */
function addArrowKeys(columns, focus) {
  const all = columns.flat();
  all[0]?.element.setAttribute("tabindex", 0);
  for (const spot of all) {
    spot.element.addEventListener("keydown", (event) => {
      const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [
        0, 0,
      ];
      const column = columns[spot.position + dx];
      const next = dx
        ? column?.reduce((best, one) => (Math.abs(one.y - spot.y) < Math.abs(best.y - spot.y) ? one : best))
        : column?.[spot.row + dy];
      if (event.key === "Escape") focus(null);
      if ((!dx && !dy) || !next) return;
      event.preventDefault();
      spot.element.setAttribute("tabindex", -1);
      next.element.setAttribute("tabindex", 0);
      next.element.focus();
    });
  }
}

function highlight(picture, parts, chosen, text, describe) {
  picture.classList.toggle("focused", chosen !== null);
  for (const part of parts) {
    part.element.classList.toggle("on", chosen !== null && [...part.paths].some((path) => chosen.has(path)));
  }
  describe(text);
}

/** Return a drawing as a standalone SVG file, with the computed styles inlined. */
export function toFile(picture, background) {
  const copy = picture.cloneNode(true);
  const styled = [
    "fill",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "opacity",
    "font-family",
    "font-size",
    "font-weight",
    "text-anchor",
  ];
  const [from, to] = [picture, copy].map((root) => [...root.querySelectorAll("path, rect, text")]);
  from.forEach((element, index) => {
    const style = getComputedStyle(element);
    styled.forEach((name) => to[index].setAttribute(name, style.getPropertyValue(name)));
  });
  copy.querySelectorAll("[tabindex]").forEach((element) => element.removeAttribute("tabindex"));
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: background }));
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}
