// Draws path instances in layers, one column per position; nodes and edges that paths share are drawn once, thicker.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { atNode, change } from "./store.js";
import { download, isNamed, isolated, labelOf, percent, score, shown } from "./words.jsx";

const ROW = 36;
const TOP = 38;
const BOX = 28;
const MIN_COLUMN = 66;
const MAX_THICKNESS = 11;
const LETTER = 7;
const STYLED = [
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

/** Measure the width that a picture has inside an element. */
export function useRoom() {
  const place = useRef(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.max(280, Math.min(960, (place.current?.clientWidth ?? 0) - 2)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return { place, width };
}

/** Stretch the places of spots over a picture, with room for the labels. */
export function fitSpots(spots, width, height) {
  const [margin, below] = [52, 30];
  const range = (name) => [Math.min(...spots.map((spot) => spot[name])), Math.max(...spots.map((spot) => spot[name]))];
  const [[left, right], [top, bottom]] = [range("x"), range("y")];
  for (const spot of spots) {
    spot.x = margin + ((spot.x - left) / (right - left || 1)) * (width - 2 * margin);
    spot.y = below / 2 + ((spot.y - top) / (bottom - top || 1)) * (height - 1.8 * below);
  }
}

/** The name of a spot below it, moved where it would leave the picture. */
export function SpotLabel({ spot, y, width, most, isCentre = false }) {
  const text = shown(labelOf(spot), most);
  const half = ((isCentre ? 8.5 : LETTER) * text.length) / 2 + 4;
  return (
    <text x={Math.max(0, half - spot.x) - Math.max(0, spot.x + half - width)} y={y} class={isCentre ? "centre" : ""}>
      {text}
    </text>
  );
}

/** Merge paths into spots (a node at a position) and lines between spots, with their shares. */
function layersOf(paths) {
  const [spots, lines] = [new Map(), new Map()];
  const depth = Math.max(0, ...paths.map((path) => path.nodes.length));
  paths.forEach((path, index) => {
    const columnOf = (step) => (step === path.nodes.length - 1 ? depth - 1 : step); // short paths, too, end at the target
    const keys = path.nodes.map((node, step) => `${columnOf(step)} ${node.node_type} ${typeof node.id} ${node.id}`);
    path.nodes.forEach((node, step) => {
      const position = columnOf(step);
      const spot = spots.get(keys[step]) ?? { key: keys[step], node, position, share: 0, paths: new Set() };
      spot.share += path.share;
      spot.paths.add(index);
      spots.set(keys[step], spot);
      if (step === 0) return;
      const key = `${keys[step - 1]}\n${keys[step]}`;
      const line = lines.get(key) ?? {
        key,
        from: spots.get(keys[step - 1]),
        to: spot,
        link: path.links[step - 1],
        share: 0,
        paths: new Set(),
      };
      line.share += path.share;
      line.paths.add(index);
      lines.set(key, line);
    });
  });
  const columns = Array.from({ length: depth }, (_, position) =>
    [...spots.values()].filter((spot) => spot.position === position),
  );
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

function place(paths, room) {
  const { columns, lines } = layersOf(paths);
  const columnWidth = Math.max(MIN_COLUMN, room / columns.length);
  const tallest = Math.max(1, ...columns.map((column) => column.length));
  for (const spot of columns.flat()) {
    spot.x = columnWidth * (spot.position + 0.5);
    spot.y = TOP + ROW * (spot.row + 0.5 + (tallest - columns[spot.position].length) / 2);
  }
  const box = Math.min(columnWidth - (columnWidth < 90 ? 8 : columnWidth < 140 ? 16 : 34), 210);
  return { columns, lines, columnWidth, box, width: columnWidth * columns.length, height: TOP + ROW * tallest + 10 };
}

const detail = (part, total) =>
  `on ${part.paths.size === 1 ? "1 path" : `${part.paths.size} paths`} drawn, ${score(part.share)} of the score${total ? `, ${percent(part.share / total)}` : ""}`;
const spotText = ({ node, ...spot }, total) =>
  `${node.node_type} ${isolated(labelOf(node), 200)}${isNamed(node) ? ` (${isolated(node.id, 80)})` : ""}: ${detail(spot, total)}`;
const lineText = (line, total) =>
  `${isolated(labelOf(line.from.node), 60)} ${line.link} ${isolated(labelOf(line.to.node), 60)}: ${detail(line, total)}`;

/** The picture of some paths; `types` are all types of the graph, for colours, and `total` is the score. */
export function PathPicture({ paths, types, total, room, name, note = "" }) {
  const drawn = useMemo(() => place(paths, room), [paths, room]);
  const [pointed, point] = useState(null);
  const [tabKey, setTabKey] = useState(null);
  const picture = useRef(null);
  const { columns, lines, columnWidth, box, width, height } = drawn;
  const spots = columns.flat();
  const reachable = spots.some((spot) => spot.key === tabKey) ? tabKey : spots[0]?.key;
  const isOn = (part) => pointed !== null && [...part.paths].some((path) => pointed.paths.has(path));
  const kind = (part) => (isOn(part) ? "on" : "");
  const onKeyDown = (spot) => (event) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [
      0, 0,
    ];
    if (event.key === "Enter") return change(atNode(spot.node));
    const column = columns[spot.position + dx];
    const nearest = (best, one) => (Math.abs(one.y - spot.y) < Math.abs(best.y - spot.y) ? one : best);
    const next = dx ? column?.reduce(nearest) : column?.[spot.row + dy];
    if ((!dx && !dy) || !next) return undefined;
    event.preventDefault();
    setTabKey(next.key);
    picture.current.querySelector(`[data-key="${CSS.escape(next.key)}"]`)?.focus();
    return undefined;
  };
  const save = () => download(`${name}.svg`, toFile(picture.current, getComputedStyle(document.body).backgroundColor));
  return (
    <figure class="picture">
      <div class="canvas" tabindex={width > room + 1 ? 0 : undefined} role="region" aria-label="Drawing of the paths">
        <svg
          ref={picture}
          viewBox={`0 0 ${width} ${height}`}
          width={width}
          height={height}
          role="group"
          class={`paths ${pointed ? "focused" : ""}`}
          aria-label={`${paths.length} paths in ${columns.length} columns; arrow keys move between nodes`}
        >
          {columns.map((column, position) => (
            <text key={position} class="heading" x={columnWidth * (position + 0.5)} y={20}>
              {shown(
                [...new Set(column.map((spot) => spot.node.node_type))].join(", "),
                Math.floor(columnWidth / LETTER),
              )}
            </text>
          ))}
          {lines.map((line) => (
            <Line key={line.key} line={line} box={box} total={total} kind={kind(line)} point={point} />
          ))}
          {spots.map((spot) => (
            <g
              key={spot.key}
              data-key={spot.key}
              class={`spot t${types.indexOf(spot.node.node_type) % 8} ${kind(spot)}`}
              role="link"
              tabindex={spot.key === reachable ? 0 : -1}
              aria-label={spotText(spot, total)}
              transform={`translate(${spot.x} ${spot.y})`}
              onPointerEnter={() => point(spot)}
              onPointerLeave={() => point(null)}
              onFocus={() => point(spot)}
              onBlur={() => point(null)}
              onClick={() => change(atNode(spot.node))}
              onKeyDown={onKeyDown(spot)}
            >
              <title>{spotText(spot, total)}</title>
              <rect x={-box / 2} y={-BOX / 2} width={box} height={BOX} rx="6" />
              <text y="4">{shown(labelOf(spot.node), Math.max(4, Math.floor((box - 8) / LETTER)))}</text>
            </g>
          ))}
        </svg>
      </div>
      <figcaption class="details quiet">
        <span>
          {pointed
            ? pointed.from
              ? lineText(pointed, total)
              : spotText(pointed, total)
            : note + "Point at a node or a line, or use Tab and the arrow keys; choose a node to go there."}
        </span>
        <button type="button" class="save-svg" onClick={save}>
          SVG
        </button>
      </figcaption>
    </figure>
  );
}

function Line({ line, box, total, kind, point }) {
  const [x0, x1, y0, y1] = [line.from.x + box / 2, line.to.x - box / 2, line.from.y, line.to.y];
  const middle = (x0 + x1) / 2;
  const thick = 1 + (MAX_THICKNESS - 1) * (total ? Math.min(1, line.share / total) : 0);
  return (
    <path
      class={`line ${kind}`}
      d={`M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`}
      stroke-width={thick.toFixed(2)}
      onPointerEnter={() => point(line)}
      onPointerLeave={() => point(null)}
    >
      <title>{lineText(line, total)}</title>
    </path>
  );
}

/** Return a drawing as a standalone SVG file, with the computed styles inlined, and where it is from. */
function toFile(picture, background) {
  const copy = picture.cloneNode(true);
  const [from, to] = [picture, copy].map((root) => [...root.querySelectorAll("path, rect, text, circle, line")]);
  from.forEach((element, index) => {
    const style = getComputedStyle(element);
    STYLED.forEach((property) => to[index].setAttribute(property, style.getPropertyValue(property)));
  });
  copy.querySelectorAll("[tabindex]").forEach((element) => element.removeAttribute("tabindex"));
  const element = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);
  const paper = element("rect");
  for (const [key, value] of [
    ["width", "100%"],
    ["height", "100%"],
    ["fill", background],
  ])
    paper.setAttribute(key, value);
  const origin = element("desc");
  origin.textContent = `${document.title}, ${location.href}, ${new Date().toISOString()}`;
  copy.prepend(origin, paper);
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

/** Save a drawing as PNG, at twice its size. */
export async function savePng(picture, name) {
  const address = URL.createObjectURL(toFile(picture, getComputedStyle(document.body).backgroundColor));
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  canvas.toBlob((blob) => download(`${name}.png`, blob));
}
