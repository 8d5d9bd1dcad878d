// Filters: conditions on hits, what to leave out, facets by attribute, the histogram of scores, and why a node is not among the hits.

import { useState } from "preact/hooks";
import { NodeBox } from "./box.jsx";
import { suggestPaths } from "./graphs.js";
import { Histogram } from "./hits.jsx";
import { graphPath, post, useAnswer } from "./requests.js";
import { change } from "./store.js";
import { article, count, metapathWords, shown, Waiting } from "./words.jsx";

const MOST_VALUES = 8;

/** Conditions on hits: those that apply, facets by attribute of the hits, and the histogram of scores. */
export function Filters({ state, side, schema, types, targetType, children }) {
  const active = state.where.length + state.unless.length;
  const [isOpen, setOpen] = useState(active > 0 || state.chance);
  const attributes = schema?.node_types.find((type) => type.node_type === targetType)?.attributes ?? [];
  const hits = side.data?.hits ?? [];
  if (!hits.length && !active) return null;
  return (
    <details class="filters" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Filters, scores, why not{active ? ` (${count(active, "condition")})` : ""}</summary>
      {isOpen && (
        <>
          <Conditions
            state={state}
            field="where"
            label="Condition"
            button="Add condition"
            placeholder={attributes[0] ? `${attributes[0]} = …` : "name ~ part of a name"}
          />
          <LeaveOut state={state} types={side.types} targetType={targetType} />
          {attributes.length > 0 && hits.length > 0 && <Facets state={state} hits={hits} targetType={targetType} />}
          <Histogram hits={hits} />
          {children}
          {targetType && !side.meaning?.whole && (
            <div class="missing">
              <NodeBox
                look="field"
                id="missing"
                graph={state.graph}
                types={types}
                only={targetType}
                label="Why is another one not among them?"
                placeholder={`Name or id of ${article(targetType)} ${shown(targetType, 30)}`}
                onNode={(node) => change({ target: String(node.id), side: "a", group: null, by: null })}
              />
            </div>
          )}
        </>
      )}
    </details>
  );
}

function addCondition(state, field, condition) {
  if (!state[field].includes(condition)) change({ [field]: [...state[field], condition], target: null });
}

/** The conditions of one field of the state, `where` or `unless`, and a form that adds one. */
function Conditions({ state, field, label, button, placeholder, prefix = "", options = [] }) {
  const add = (event) => {
    event.preventDefault();
    const input = event.currentTarget.elements.condition;
    if (input.value.trim()) addCondition(state, field, input.value.trim());
    input.value = "";
  };
  return (
    <div class="conditions" data-field={field}>
      {state[field].length > 0 && (
        <div class="chips">
          {state[field].map((condition) => (
            <button
              type="button"
              class="chip"
              key={condition}
              aria-label={`Remove the condition ${prefix}${condition}`}
              onClick={() => change({ [field]: state[field].filter((one) => one !== condition), target: null })}
            >
              {prefix}
              {shown(condition, 60)} ✕
            </button>
          ))}
        </div>
      )}
      <form class="row" onSubmit={add}>
        <label for={field} class="unseen">
          {label}
        </label>
        <input
          id={field}
          name="condition"
          type="text"
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          list={options.length ? `${field}-options` : undefined}
        />
        {options.length > 0 && (
          <datalist id={`${field}-options`}>
            {options.map((path) => (
              <option key={path.metapath} value={path.metapath}>
                {metapathWords(path.metapath, path.node_types)}
              </option>
            ))}
          </datalist>
        )}
        <button>{button}</button>
      </form>
    </div>
  );
}

const MOST_STEPS = 4;

/** Leave out hits that another meta-path relates to the query. */
function LeaveOut({ state, types, targetType }) {
  const type = state.queryType ?? types[0] ?? null;
  const { data } = useAnswer(
    type && targetType ? ["unless", state.graph, type, targetType] : null,
    () => suggestPaths(state.graph, type, MOST_STEPS, targetType),
    state.graph,
  );
  return (
    <Conditions
      state={state}
      field="unless"
      label="Leave out those related by this meta-path"
      button="Leave out"
      prefix="not by "
      placeholder={`Related by ${data?.[0]?.metapath ?? "another meta-path"}`}
      options={data ?? []}
    />
  );
}

/** The values of the attributes among the hits; choosing one adds it as a condition. */
function Facets({ state, hits, targetType }) {
  const ids = hits.map((hit) => hit.id);
  const { data } = useAnswer(
    ["facets", state.graph, targetType, ids],
    (signal) => post(graphPath(state.graph, "/nodes"), { node_type: targetType, ids }, signal),
    state.graph,
  );
  if (!data) return <Waiting text="Reading the attributes of the hits" />;
  const facets = facetsOf(data.nodes.filter(Boolean));
  return (
    <dl class="facets">
      {facets.map(({ name, values }) => (
        <div key={name}>
          <dt>{shown(name, 40)}</dt>
          <dd class="chips">
            {values.map(([value, number]) => (
              <button
                type="button"
                class="chip"
                key={value}
                onClick={() => addCondition(state, "where", `${name} = ${value}`)}
              >
                {shown(value, 30)} <span class="id">{number}</span>
              </button>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** List the attributes whose values repeat among some nodes, with the most frequent values. */
function facetsOf(nodes) {
  const names = Object.keys(nodes[0]?.attributes ?? {});
  return names
    .map((name) => {
      const counts = new Map();
      for (const node of nodes) {
        const value = node.attributes[name];
        if (value !== null && value !== "") counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
      }
      const values = [...counts].sort((x, y) => y[1] - x[1]).slice(0, MOST_VALUES);
      return { name, values, repeats: values.length > 0 && values[0][1] > 1 };
    })
    .filter((facet) => facet.repeats);
}
