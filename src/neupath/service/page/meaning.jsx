// What similar means: the meta-path, built by clicking types or typed, and the measure or model.

import { useEffect, useRef, useState } from "preact/hooks";
import { modelTitle, readPath, suggestPaths } from "./graphs.js";
import { useAnswer } from "./requests.js";
import { SchemaPicture } from "./schema.jsx";
import { change } from "./store.js";
import { announce, metapathWords, shown } from "./words.jsx";

const DEBOUNCE = 120;

/** Return a meta-path without its last step, in the form the service writes it. */
async function withoutLastStep(graph, parsed, text) {
  const types = parsed.node_types.slice(0, -1);
  if (types.length <= 1) return types[0] ?? "";
  const whole = parsed.metapath ?? "";
  for (let length = whole.length - 1; length > 0; length -= 1) {
    const head = whole.slice(0, length);
    const isInCondition = head.lastIndexOf("[") > head.lastIndexOf("]");
    if (isInCondition || !(head.endsWith(types.at(-1)) || head.endsWith("]"))) continue;
    const shorter = await readPath(graph, head);
    if (shorter.valid && shorter.node_types.length === types.length) return shorter.metapath;
  }
  return text.replace(/[\s<>-]*(?:\[[^\]]*\]|[^\s<>[\]-])*[\s<>-]*$/, ""); // drop the last, incomplete word
}

const sideField = (name, side) => (side === "b" ? `${name}2` : name);

/** The builder of one meaning. A meta-path takes effect as soon as it can be searched from the node. */
export function MeaningBuilder({ state, served, schema, side, isNarrow }) {
  const committed = state[sideField("path", side)];
  const [draft, setDraft] = useState(committed || state.queryType || "");
  const [settled, setSettled] = useState(draft);
  const [hint, setHint] = useState("");
  const own = useRef(committed); // the meta-path that this builder has put into the state
  const wasSet = useRef(false); // by the user, also to what it was before
  const clicked = useRef([]); // types that were clicked before the service said what can follow
  useEffect(() => {
    if (committed && committed !== own.current) setDraft(committed); // Back, Forward, or a card
  }, [committed]);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(draft), DEBOUNCE);
    return () => clearTimeout(timer);
  }, [draft]);
  const { data: parsed } = useAnswer(
    ["prefix", state.graph, settled],
    () => readPath(state.graph, settled),
    state.graph,
  );
  const from = state.queryType ?? parsed?.node_types[0] ?? null;
  const steps = Math.min(8, Math.max(4, 2 * ((parsed?.node_types.length ?? 1) - 1)));
  const { data: suggestions } = useAnswer(
    from ? ["suggest", state.graph, from, steps] : null,
    () => suggestPaths(state.graph, from, steps),
    `${state.graph} ${from}`,
  );
  const measure = state[sideField("measure", side)];
  const status = parsed ? statusOf(parsed, draft, state.queryType) : ["", ""];
  useEffect(() => {
    if (
      !parsed?.valid ||
      parsed.text !== draft ||
      status[1] !== "good" ||
      (parsed.metapath === committed && !wasSet.current)
    )
      return;
    if (clicked.current.length) return;
    wasSet.current = false;
    own.current = parsed.metapath;
    const usable = parsed.measures.includes(measure) ? measure : parsed.measures[0];
    change({
      [sideField("path", side)]: parsed.metapath,
      [sideField("measure", side)]: usable,
      [sideField("model", side)]: null,
      ...(side === "a" ? { mix: null } : {}),
      target: null,
      group: null,
      by: null,
    });
  }, [parsed, draft]);
  const set = (text) => {
    wasSet.current = true;
    setHint("");
    setDraft(text);
    setSettled(text);
  };
  const step = (type) => {
    if (parsed?.text !== draft) return void clicked.current.push(type); // until it is known what can follow
    const option = parsed.next.find((one) => one.node_type === type) ?? (draft.trim() ? null : { metapath: type });
    if (option) return set(option.metapath);
    const reason = `No step leads from the end of this meta-path to ${type}.`;
    setHint(reason);
    return announce(reason);
  };
  useEffect(() => {
    if (parsed?.text === draft && clicked.current.length) step(clicked.current.shift());
  }, [parsed, draft]);
  const isReplaced = side === "a" && state.mix !== null;
  return (
    <div class="builder">
      <div class="fields">
        <div class="field">
          <label for={`path-${side}`}>Meta-path</label>
          <div class="row">
            <input
              id={`path-${side}`}
              type="text"
              value={draft}
              autocomplete="off"
              spellcheck={false}
              aria-describedby={`status-${side}`}
              placeholder={suggestions?.[0]?.metapath ?? "author-paper-author"}
              onInput={(event) => setDraft(event.target.value)}
            />
            <button
              type="button"
              id={`undo-${side}`}
              aria-label="Undo the last step"
              title="Undo the last step"
              disabled={!parsed}
              onClick={async () => set(await withoutLastStep(state.graph, parsed, draft))}
            >
              ↶
            </button>
            <button
              type="button"
              id={`clear-${side}`}
              aria-label="Clear the meta-path"
              title="Start again"
              onClick={() => set(state.queryType ?? "")}
            >
              ✕
            </button>
          </div>
          <p class={`status ${status[1]}`} id={`status-${side}`} role="status">
            {hint || status[0]}
          </p>
          {isReplaced && (
            <p class="quiet">The list is ranked by your examples; a meta-path that you choose here replaces them.</p>
          )}
        </div>
        {parsed?.next.length > 0 && (
          <div class="field">
            <span class="label" id={`next-title-${side}`}>
              Next step
            </span>
            <div class="chips" id={`next-${side}`} role="group" aria-labelledby={`next-title-${side}`}>
              {parsed.next.map((next) => (
                <button type="button" class="chip" key={next.metapath} onClick={() => set(next.metapath)}>
                  {next.link && <span class="id">{shown(next.link, 40)}</span>}
                  {shown(next.node_type, 40)}
                </button>
              ))}
            </div>
          </div>
        )}
        <Suggestions suggestions={suggestions} parsed={parsed} from={from} set={set} />
      </div>
      <SchemaPicture
        schema={schema}
        walked={isReplaced ? [] : (parsed?.node_types ?? [])}
        next={parsed?.text === draft ? parsed.next : null}
        choose={step}
        isNarrow={isNarrow}
        label={side === "b" ? "Schema, second meaning" : "Schema"}
      />
    </div>
  );
}

function Suggestions({ suggestions, parsed, from, set }) {
  const open = parsed?.valid && !parsed.symmetric ? parsed.metapath : "";
  const fitting = (suggestions ?? []).filter((path) => path.metapath.startsWith(open)).slice(0, 8);
  if (!fitting.length) return null;
  return (
    <div class="field">
      <span class="label">{open ? "Complete it" : `From ${shown(from, 30)} and back`}</span>
      <ul class="suggestions">
        {fitting.map((path) => (
          <li key={path.metapath}>
            <button
              type="button"
              class="suggestion"
              aria-pressed={path.metapath === parsed?.metapath}
              onClick={() => set(path.metapath)}
            >
              {metapathWords(path.metapath, path.node_types)} <span class="id">{shown(path.metapath, 90)}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function statusOf(parsed, draft, type) {
  if (!draft.trim()) return ["Start with a type.", ""];
  if (!parsed.valid)
    return [
      parsed.next.length && parsed.node_types.length === 0 ? "Choose the next step." : parsed.error,
      parsed.next.length ? "open" : "bad",
    ];
  if (type && parsed.node_types[0] !== type)
    return [`This meta-path starts at ${parsed.node_types[0]}, and the node is ${type}.`, "bad"];
  const kind = parsed.symmetric ? "out and back" : `from ${parsed.node_types[0]} to ${parsed.node_types.at(-1)}`;
  return [`✓ ${parsed.metapath}, ${kind}`, "good"];
}

/** The measure or model of one side. */
export function MeasureSelect({ state, served, side, parsed }) {
  const [measure, model] = [state[sideField("measure", side)], state[sideField("model", side)]];
  const usable = (one) => one.metapaths === "none" || !parsed?.valid || parsed.measures.includes(one.name);
  const models = served.models.filter((one) => one.graphs.includes(state.graph));
  const isMix = side === "a" && state.mix !== null;
  const choose = (event) => {
    const [kind, name] = [
      event.target.value.slice(0, event.target.value.indexOf(":")),
      event.target.value.slice(event.target.value.indexOf(":") + 1),
    ];
    if (kind === "mix") return;
    const part =
      kind === "model"
        ? { [sideField("model", side)]: name }
        : { [sideField("measure", side)]: name, [sideField("model", side)]: null };
    change({ ...part, ...(side === "a" ? { mix: null } : {}), group: null });
  };
  const option = (one) => (
    <option key={one.name} value={`measure:${one.name}`} disabled={!usable(one)}>
      {usable(one) ? one.name : `${one.name} (needs out and back)`}
    </option>
  );
  const about = served.measures.find((one) => one.name === measure)?.about ?? "";
  return (
    <label class="small" title={about}>
      Measure{state.compare ? ` ${side.toUpperCase()}` : ""}{" "}
      <select
        id={`measure-${side}`}
        value={isMix ? "mix:" : model ? `model:${model}` : `measure:${measure}`}
        onChange={choose}
      >
        {isMix && <option value="mix:">your examples</option>}
        <optgroup label="Along the meta-path">
          {served.measures.filter((one) => one.metapaths !== "none").map(option)}
        </optgroup>
        <optgroup label="Over the whole graph">
          {served.measures.filter((one) => one.metapaths === "none").map(option)}
        </optgroup>
        {models.length > 0 && (
          <optgroup label="Saved models">
            {models.map((one) => (
              <option key={one.name} value={`model:${one.name}`}>
                {shown(modelTitle(one.name), 50)}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </label>
  );
}
