// Editors of the meaning: the meta-path and measure of each side, set by clicking types, typing, or suggestions.

import { combobox } from "./combobox.js";
import { announce, at, el, refill, shown } from "./dom.js";
import { isWhole, readPath, readSchema, served, suggestPaths } from "./graphs.js";
import { drawSchema, showSchema, summary } from "./schema.js";
import { change, meaning, meaningText, state } from "./state.js";

const SIDES = ["a", "b"];
let edited = "a";
let latestUpdate = 0;

const end = (side) => (side === "b" ? "2" : "");
const pathOf = (side) => state[`path${end(side)}`];

/** Set the meta-path of a side, by default the one being edited. */
function takePath(text, side = edited, options = {}) {
  change({ [`path${end(side)}`]: text, [`model${end(side)}`]: null, [`mix${end(side)}`]: null, target: null }, options);
}

/** Show or hide the editors on a narrow page. */
function toggleEditors() {
  const open = at("side").classList.toggle("open");
  at("means-toggle").setAttribute("aria-expanded", String(open));
  at("means-toggle").textContent = open ? "Done" : "Change";
}

/** Connect the editors to the state. */
export function setUpMeaning() {
  at("means-toggle").addEventListener("click", toggleEditors);
  for (const side of SIDES) {
    const input = at(`path-${side}`);
    combobox(input, {
      openOnFocus: false,
      enter: (text) => takePath(text, side),
      choose: (text) => takePath(text, side),
      find: async (text) => {
        const parsed = await readPath(state.graph, text);
        return parsed.next.map((next) => ({
          value: next.metapath,
          label: [
            el("span", { class: "name" }, shown(next.metapath, 80)),
            el("span", { class: "id" }, shown(next.link ?? "start here", 40)),
          ],
        }));
      },
    });
    let typing = false;
    input.addEventListener("focus", () => {
      typing = false;
      edited = side;
      updateMeaning();
    });
    input.addEventListener("input", () => {
      takePath(input.value, side, { replace: typing });
      typing = true;
    });
    at(`undo-${side}`).addEventListener("click", async () => takePath(await withoutLastStep(pathOf(side)), side));
    at(`clear-${side}`).addEventListener("click", () => {
      takePath("", side);
      input.focus();
    });
    at(`measure-${side}`).addEventListener("change", (event) => takeMeasure(event.target.value, side));
  }
}

function takeMeasure(value, side) {
  const [kind, name] = [value.slice(0, value.indexOf(":")), value.slice(value.indexOf(":") + 1)];
  if (kind === "mix") return;
  change({
    [`measure${end(side)}`]: kind === "measure" ? name : state[`measure${end(side)}`],
    [`model${end(side)}`]: kind === "model" ? name : null,
    [`mix${end(side)}`]: null,
  });
}

/** Return a meta-path without its last step, in the form the service writes it. */
export async function withoutLastStep(text) {
  const parsed = await readPath(state.graph, text);
  const types = parsed.node_types.slice(0, -1);
  if (types.length === 1) return types[0];
  const whole = parsed.metapath ?? "";
  for (let length = whole.length - 1; length > 0; length -= 1) {
    const head = whole.slice(0, length);
    if (!head.endsWith(types.at(-1)) && !/[\]}]$/.test(head)) continue; // a condition stands behind its type
    const shorter = await readPath(state.graph, head);
    if (shorter.valid && shorter.node_types.length === types.length) return shorter.metapath;
  }
  return text.replace(/[\s<>-]*[^\s<>-]*[\s<>-]*$/, ""); // drop the last, incomplete word
}

/** Show the schema, both editors, the next steps and suggestions. */
export async function updateMeaning() {
  const id = (latestUpdate += 1);
  const { graph } = state;
  if (!state.compare) edited = "a";
  const schema = await readSchema(graph);
  const [a, b] = await Promise.all(SIDES.map((side) => readPath(graph, pathOf(side))));
  if (id !== latestUpdate) return;
  at("editor-b").hidden = !state.compare;
  showLine();
  showEditor("a", a);
  showEditor("b", b);
  const parsed = edited === "b" ? b : a;
  at("editor-a").classList.toggle("edited", state.compare && edited === "a");
  at("editor-b").classList.toggle("edited", edited === "b");
  at("graph-summary").replaceChildren(summary(served.graphs.find((one) => one.name === graph)));
  showSchema(
    drawSchema(
      schema,
      parsed,
      (option) => {
        takePath(option.metapath);
        announce(`meta-path ${option.metapath}`);
      },
      showNoStep,
    ),
  );
  showNext(parsed);
  await showSuggestions(parsed, schema, id);
}

/** Describe the meanings in one line, for a narrow page where the editors are hidden. */
function showLine() {
  const meanings = state.compare ? [meaning("a"), meaning("b")] : [meaning("a")];
  at("means-line").textContent = meanings.map(meaningText).join(" / ");
}

function showNoStep(type) {
  const hint = `No step leads from the end of this meta-path to ${type}. Clear it to start there.`;
  at("schema-hint").textContent = hint;
  announce(hint);
}

function showEditor(side, parsed) {
  const input = at(`path-${side}`);
  const [model, mix] = [state[`model${end(side)}`], state[`mix${end(side)}`]];
  if (input.value !== pathOf(side)) input.value = pathOf(side);
  for (const id of ["path", "undo", "clear"]) at(`${id}-${side}`).disabled = Boolean(model || mix);
  const [text, kind] = statusOf(parsed, side, model, mix);
  at(`status-${side}`).className = `status ${kind}`;
  at(`status-${side}`).textContent = text;
  showMeasures(side, parsed, model, mix);
}

function statusOf(parsed, side, model, mix) {
  const [text, measure] = [pathOf(side), state[`measure${end(side)}`]];
  if (mix) return [mix.map((part) => `${part.weight.toFixed(2)} × ${part.metapath}`).join(" + "), "good"];
  if (model) return ["The saved model defines what similar means.", "good"];
  if (isWhole(measure)) return [`✓ ${measure} needs no meta-path; its first type selects the nodes.`, "good"];
  if (!text.trim()) return ["Start with a type.", ""];
  if (!parsed.valid) return [parsed.error, parsed.next.length ? "open" : "bad"];
  const kind = parsed.symmetric ? "out and back" : `from ${parsed.node_types[0]} to ${parsed.node_types.at(-1)}`;
  return [`✓ ${parsed.metapath}, ${kind}`, "good"];
}

function showMeasures(side, parsed, model, mix) {
  const usable = (name) => !parsed.valid || isWhole(name) || parsed.measures.includes(name);
  const models = served.models.filter((one) => one.graphs.includes(state.graph));
  const option = ({ name }) =>
    el(
      "option",
      { value: `measure:${name}`, disabled: !usable(name) },
      usable(name) ? name : `${name} (needs a meta-path out and back)`,
    );
  const groups = [
    ["Along the meta-path", served.measures.filter(({ name }) => !isWhole(name))],
    ["Over the whole graph", served.measures.filter(({ name }) => isWhole(name))],
  ];
  const select = at(`measure-${side}`);
  select.replaceChildren(...groups.map(([label, list]) => el("optgroup", { label }, list.map(option))));
  if (models.length)
    select.append(
      el(
        "optgroup",
        { label: "Saved models" },
        models.map(({ name }) => el("option", { value: `model:${name}` }, shown(name, 40))),
      ),
    );
  if (mix)
    select.append(el("optgroup", { label: "By example" }, el("option", { value: "mix:" }, "inferred from your pairs")));
  const measure = state[`measure${end(side)}`];
  select.value = mix ? "mix:" : model ? `model:${model}` : `measure:${measure}`;
  const chosen = models.find((one) => one.name === model);
  const about = mix
    ? `A weighted sum of ${mix[0].measure} scores.`
    : chosen
      ? `${chosen.measure}, ${chosen.metapath ?? `from ${chosen.source_type} to ${chosen.target_type}`}.`
      : served.measures.find((one) => one.name === measure)?.about;
  at(`about-${side}`).textContent = about ?? "";
}

function showNext(parsed) {
  at("schema-hint").textContent = state.path
    ? "Choose a type to add a step; dashed types cannot follow."
    : "Choose types one after another to build a meta-path.";
  const hadFocus = at("next").contains(document.activeElement);
  at("following").hidden = !parsed.next.length;
  if (hadFocus && !parsed.next.length) at(`path-${edited}`).focus();
  refill(
    at("next"),
    parsed.next.map((next) =>
      el(
        "button",
        {
          type: "button",
          class: "chip",
          "data-key": `${next.link} ${next.node_type}`,
          onclick: () => takePath(next.metapath),
        },
        next.link ? el("span", { class: "id" }, shown(next.link, 40)) : null,
        shown(next.node_type, 40),
      ),
    ),
  );
}

async function showSuggestions(parsed, schema, id) {
  const from =
    parsed.node_types[0] ??
    schema.node_types
      .map((type) => type.node_type)
      .find((type) => parsed.next.length && parsed.text.trim().toLowerCase().startsWith(type.toLowerCase()));
  const steps = Math.max(4, 2 * (parsed.node_types.length - 1));
  const all = from ? await suggestPaths(state.graph, from, Math.min(steps, 8)) : [];
  if (id !== latestUpdate) return;
  const open = parsed.valid && !parsed.symmetric ? parsed.metapath : "";
  const fitting = all.filter((path) => path.metapath.startsWith(open)).slice(0, 8);
  at("suggested").hidden = !fitting.length;
  at("suggestions-title").textContent = open ? "Complete it" : `Meta-paths of ${shown(from ?? "", 30)}`;
  refill(
    at("suggestions"),
    fitting.map((path) =>
      el(
        "li",
        {},
        el(
          "button",
          {
            type: "button",
            class: "suggestion",
            "data-key": path.metapath,
            "aria-pressed": String(path.metapath === parsed.metapath),
            onclick: () => takePath(path.metapath),
          },
          path.metapath,
        ),
      ),
    ),
  );
}
