// The pair view: every meta-path that joins two nodes, edges first, then by length, then by rank.

import { NodeBox } from "./box.jsx";
import { NodeLink } from "./node.jsx";
import { get, graphPath, useAnswer } from "./requests.js";
import { atSearch, change, linkTo } from "./store.js";
import { Bar, count, labelOf, percent, Problem, score, shown, Waiting } from "./words.jsx";

const STEPS = [2, 3, 4, 5, 6];

function useNode(graph, type, id) {
  const { data } = useAnswer(id === null || !type ? null : ["node", graph, type, id], (signal) =>
    get(graphPath(graph, "/node"), { node_type: type, id, limit: 0 }, signal),
  );
  return id === null ? null : (data ?? { node_type: type, id, name: null });
}

export function RelatePage({ state, types }) {
  const { graph, query, queryType, target, targetType, steps } = state;
  const [from, to] = [useNode(graph, queryType, query), useNode(graph, targetType, target)];
  const isWhole = query !== null && target !== null;
  const { data, error, isLoading, retry } = useAnswer(
    isWhole ? ["relate", graph, queryType, query, targetType, target, steps] : null,
    (signal) =>
      get(
        graphPath(graph, "/relate"),
        { query, target, query_type: queryType, target_type: targetType, max_steps: steps, limit: 40 },
        signal,
      ),
  );
  const box = (id, label, node, choose) => (
    <NodeBox
      look="field"
      id={id}
      graph={graph}
      types={types}
      label={label}
      placeholder="Name or id"
      value={node ? labelOf(node) : ""}
      onNode={choose}
    />
  );
  return (
    <section class="relate" aria-labelledby="relate-title" aria-busy={isLoading}>
      <h1 id="relate-title" tabindex={-1}>
        {from && to ? (
          <>
            How <bdi>{shown(labelOf(from), 60)}</bdi> and <bdi>{shown(labelOf(to), 60)}</bdi> are related
          </>
        ) : (
          "How are two nodes related?"
        )}
      </h1>
      <div class="two">
        {box("relate-query", "From", from, (node) => change({ query: String(node.id), queryType: node.node_type }))}
        {box("relate-target", "To", to, (node) => change({ target: String(node.id), targetType: node.node_type }))}
      </div>
      <div class="bar-of-tools">
        <p class="grow summary">{data ? shown(data.summary, 400) : ""}</p>
        <label class="small">
          Up to{" "}
          <select
            id="steps"
            value={String(steps)}
            onChange={(event) => change({ steps: Number(event.target.value) }, { replace: true })}
          >
            {[...new Set([...STEPS, steps])].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>{" "}
          steps
        </label>
        {isWhole && (
          <a
            class="button"
            href={linkTo({ query: target, queryType: targetType, target: query, targetType: queryType })}
          >
            Swap
          </a>
        )}
      </div>
      {error && <Problem error={error} retry={retry} />}
      {isLoading && <Waiting text="Trying all meta-paths" />}
      {data && (
        <ol class="relations-list">
          {data.metapaths.map((path) => (
            <Related key={path.metapath} path={path} from={from} to={to} />
          ))}
        </ol>
      )}
      {data?.left_out && <p class="quiet">{shown(data.left_out, 400)}</p>}
    </section>
  );
}

function Related({ path, from, to }) {
  const link = linkTo({ ...atSearch(from, path.metapath, String(to.id)), measure: path.measure });
  return (
    <li class="related">
      <a class="path" href={link}>
        {shown(path.metapath, 160)}
      </a>
      <span class="standing">
        rank <b>{count(path.rank)}</b> of {count(path.targets)}
      </span>
      <Bar share={path.percentile / 100} title={`no lower than ${path.percentile.toFixed(1)} % of the targets`} />
      <span class="score">{score(path.score)}</span>
      <span class="quiet">
        {count(path.paths, "path")}
        {path.group && (
          <>
            , most by <NodeLink node={path.group} most={40} /> ({percent(path.group.share)})
          </>
        )}
      </span>
    </li>
  );
}
