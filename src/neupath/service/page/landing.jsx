// Where one starts: the box, well-connected nodes of each type, recent searches, and the schema.

import { NodeBox } from "./box.jsx";
import { modelTitle } from "./graphs.js";
import { promptFor } from "./node.jsx";
import { get, graphPath, useAnswer } from "./requests.js";
import { SchemaPicture, SchemaTable } from "./schema.jsx";
import {
  atNode,
  change,
  forgetSearches,
  linkTo,
  notify,
  recentSearches,
  savedSearches,
  unsaveSearch,
} from "./store.js";
import { count, labelOf, shown, TypeChip } from "./words.jsx";

const MOST_TYPES = 6;

/** Order types by how many different things can be said of them: those with names and many relations first. */
function interesting(schema) {
  const ways = (type) => schema.steps.filter((step) => step.source === type.node_type).length;
  return [...schema.node_types].sort((a, b) => b.named - a.named || ways(b) - ways(a) || b.nodes - a.nodes);
}

export function Landing({ state, graphs, models, schema, types, isNarrow }) {
  const { graph } = state;
  const { data: hubs } = useAnswer(["hubs", graph], (signal) => get(graphPath(graph, "/hubs"), { limit: 4 }, signal));
  const about = graphs.find((one) => one.name === graph);
  const [saved, recent] = [savedSearches(graph), recentSearches(graph)];
  const isPath = state.path.includes("-");
  const model = models.find((one) => one.name === state.model && one.graphs.includes(graph)) ?? null;
  const from = (node) => ({ ...atNode(node), ...(isPath ? { path: state.path } : {}), model: model?.name ?? null });
  return (
    <div class="landing">
      <h1 tabindex={-1}>What is similar, and why?</h1>
      {model && (
        <p class="quiet">
          By the model {shown(modelTitle(model.name), 60)}: choose the {shown(model.source_type, 40)} to start from.{" "}
          <a href={linkTo({ model: null })}>Any meaning</a>
        </p>
      )}
      {isPath && (
        <p class="quiet">
          By {shown(state.path, 120)}: choose the node to start from. <a href={linkTo({ path: "" })}>Any meaning</a>
        </p>
      )}
      <NodeBox
        id="query"
        graph={graph}
        types={types}
        look="big"
        label={`Look up ${promptFor(schema)}`}
        placeholder="A name, an id, or part of one"
        only={model?.source_type ?? null}
        onNode={(node) => change(from(node))}
        onPath={(path) => change({ path: path.metapath })}
      />
      <div class="starters">
        {interesting(schema)
          .filter((type) => !model || type.node_type === model.source_type)
          .slice(0, MOST_TYPES)
          .map((type) => {
            const nodes = hubs?.nodes.filter((node) => node.node_type === type.node_type) ?? [];
            return (
              nodes.length > 0 && (
                <div class="starter" key={type.node_type}>
                  <TypeChip type={type.node_type} types={types} />
                  <div class="chips">
                    {nodes.map((node) => (
                      <a class="chip" key={node.id} href={linkTo(from(node))} title={`${count(node.degree, "edge")}`}>
                        <bdi>{shown(labelOf(node), 36)}</bdi>
                      </a>
                    ))}
                  </div>
                </div>
              )
            );
          })}
      </div>
      {saved.length > 0 && (
        <section class="recent saved" aria-labelledby="saved-title">
          <h2 id="saved-title">Saved searches</h2>
          <ul>
            {saved.map((row) => (
              <li key={row.address} class="row">
                <a href={row.address}>{shown(row.title, 160)}</a>
                <button
                  type="button"
                  class="remove"
                  aria-label={`Remove the saved search ${shown(row.title, 160)}`}
                  title="Remove"
                  onClick={() => unsaveSearch(row.address)}
                >
                  ✕
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      {recent.length > 0 && (
        <section class="recent" aria-labelledby="recent-title">
          <h2 id="recent-title">Recent searches</h2>
          <ul>
            {recent.slice(0, 6).map((row) => (
              <li key={row.address}>
                <a href={row.address}>{shown(row.title, 120)}</a>
              </li>
            ))}
          </ul>
          <button
            type="button"
            onClick={() => {
              forgetSearches();
              notify();
            }}
          >
            Forget them
          </button>
        </section>
      )}
      <section aria-labelledby="graph-title" class="about-graph">
        <h2 id="graph-title">{shown(graph, 60)}</h2>
        {about && (
          <p class="quiet">
            {count(about.nodes, "node")} of {count(schema.node_types.length, "type")}, {count(about.edges, "edge")} of{" "}
            {count(schema.relations.length, "relation")}
            {about.version === undefined ? "" : `, version ${about.version}`}
          </p>
        )}
        <SchemaPicture schema={schema} isNarrow={isNarrow} choose={(type) => change({ path: type, build: true })} />
        <details>
          <summary>All relations</summary>
          <SchemaTable schema={schema} />
        </details>
      </section>
    </div>
  );
}
