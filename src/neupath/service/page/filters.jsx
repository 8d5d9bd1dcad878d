// Filters: conditions on hits, facets by attribute, the histogram of scores, and why a node is not among the hits.

import { useState } from "preact/hooks";
import { NodeBox } from "./box.jsx";
import { Histogram } from "./hits.jsx";
import { graphPath, post, useAnswer } from "./requests.js";
import { change } from "./store.js";
import { article, count, shown, Waiting } from "./words.jsx";

const MOST_VALUES = 8;

/** Conditions on hits: those that apply, facets by attribute of the hits, and the histogram of scores. */
export function Filters({ state, side, schema, types, targetType, children }) {
  const [isOpen, setOpen] = useState(state.where.length > 0);
  const attributes = schema?.node_types.find((type) => type.node_type === targetType)?.attributes ?? [];
  const hits = side.data?.hits ?? [];
  if (!hits.length && !state.where.length) return null;
  return (
    <details class="filters" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Filters, scores, why not{state.where.length ? ` (${count(state.where.length, "condition")})` : ""}
      </summary>
      {isOpen && (
        <>
          <Conditions state={state} attributes={attributes} />
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

function addCondition(state, condition) {
  if (!state.where.includes(condition)) change({ where: [...state.where, condition], target: null });
}

function Conditions({ state, attributes }) {
  const add = (event) => {
    event.preventDefault();
    const field = event.currentTarget.elements.condition;
    if (field.value.trim()) addCondition(state, field.value.trim());
    field.value = "";
  };
  const example = attributes[0] ? `${attributes[0]} = …` : "name ~ part of a name";
  return (
    <div class="conditions">
      <div class="chips">
        {state.where.map((condition) => (
          <button
            type="button"
            class="chip"
            key={condition}
            aria-label={`Remove the condition ${condition}`}
            onClick={() => change({ where: state.where.filter((one) => one !== condition), target: null })}
          >
            {shown(condition, 60)} ✕
          </button>
        ))}
      </div>
      <form class="row" onSubmit={add}>
        <label for="condition" class="unseen">
          Condition
        </label>
        <input id="condition" name="condition" type="text" placeholder={example} autocomplete="off" />
        <button>Add condition</button>
      </form>
    </div>
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
              <button type="button" class="chip" key={value} onClick={() => addCondition(state, `${name} = ${value}`)}>
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
