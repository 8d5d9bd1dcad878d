// One node: its attributes, its neighbours by relation, their picture, and what is similar to it by which meta-path.

import { useState } from "preact/hooks";
import { Neighbourhood, NEIGHBOURS } from "./neighbourhood.jsx";
import { get, graphPath, useAnswer } from "./requests.js";
import { atNode, atSearch, linkTo } from "./store.js";
import {
  article,
  Bar,
  count,
  isNamed,
  labelOf,
  metapathWords,
  NodeName,
  Problem,
  score,
  shown,
  TypeChip,
  Waiting,
} from "./words.jsx";

const FEW = 8;
const MANY = 60;

/** A link to a node, wherever the page names one. */
export function NodeLink({ node, most = 60, withId = false }) {
  return (
    <a class="node" href={linkTo(atNode(node))}>
      <NodeName node={node} most={most} withId={withId} />
    </a>
  );
}

export function NodePage({ state, types }) {
  const { graph, query: id, queryType: type } = state;
  const similar = useAnswer(["similar", graph, type, id], (signal) =>
    get(graphPath(graph, "/similar"), { node_type: type, query: id, k: 3, limit: 9 }, signal),
  );
  return (
    <div class="node-page">
      <NodeCard state={state} types={types} />
      <section aria-labelledby="similar-title" aria-busy={similar.isLoading} class="similar">
        <h2 id="similar-title">Similar by …</h2>
        {similar.isLoading && <Waiting text="Searching along the promising meta-paths" />}
        {similar.error && <Problem error={similar.error} retry={similar.retry} />}
        {similar.data && <SimilarCards answer={similar.data} type={type} />}
      </section>
    </div>
  );
}

function SimilarCards({ answer, type }) {
  const { metapaths, too_large: tooLarge, query } = answer;
  if (!metapaths.length)
    return <p class="empty">No meta-path out and back leads from this {shown(type, 40)} to another one.</p>;
  return (
    <>
      <ul class="cards">
        {metapaths.map((card) => (
          <SimilarCard key={card.metapath} card={card} query={query} />
        ))}
      </ul>
      {tooLarge > 0 && (
        <p class="quiet">
          {count(tooLarge, "longer meta-path")} would take long and {tooLarge === 1 ? "is" : "are"} left out; build one
          to search it.
        </p>
      )}
    </>
  );
}

function SimilarCard({ card, query }) {
  const words = metapathWords(card.metapath, card.node_types);
  const all = card.more ? `${count(card.targets)} or more hits` : count(card.targets, "hit");
  const isAll = card.ties === card.targets;
  const ties = isAll ? (card.more ? `${count(card.ties)} or more` : "all") : count(card.ties);
  const tied = card.ties > 1 ? `, ${ties} tie at ${score(card.hits[0].score)}` : "";
  return (
    <li class="card">
      <h3>
        <a href={linkTo(atSearch(query, card.metapath))}>{words}</a>
      </h3>
      <p class="quiet path">{shown(card.metapath, 90)}</p>
      <ol class="best">
        {card.hits.map((hit) => (
          <li key={hit.id}>
            <a class="hit-link" href={linkTo(atSearch(query, card.metapath, String(hit.id)))} title="Why?">
              <NodeName node={hit} most={50} withId={false} />
              <Bar share={hit.score / (card.hits[0].score || 1)} />
              <span class="score">{score(hit.score)}</span>
            </a>
          </li>
        ))}
      </ol>
      <p class="quiet">
        {all}
        {tied}
      </p>
    </li>
  );
}

/** The card of a node. */
function NodeCard({ state, types }) {
  const { graph, query: id, queryType: type } = state;
  const [limit, setLimit] = useState(FEW);
  const [isDrawn, setDrawn] = useState(false);
  const wanted = isDrawn ? Math.max(limit, NEIGHBOURS) : limit;
  const {
    data: node,
    error,
    retry,
    isLoading,
  } = useAnswer(
    ["node", graph, type, id, wanted],
    (signal) => get(graphPath(graph, "/node"), { node_type: type, id, limit: wanted }, signal),
    `${graph}\n${type}\n${id}`,
  );
  if (error) return <Problem error={error} retry={retry} />;
  if (!node)
    return (
      <section class="node-card" aria-busy="true">
        <Waiting text="Looking up the node" />
      </section>
    );
  const attributes = Object.entries(node.attributes).filter(([, value]) => value !== null && value !== "");
  const hidden = node.links.some((link) => link.degree > limit);
  return (
    <section class="node-card" aria-labelledby="node-title" aria-busy={isLoading}>
      <div class="title">
        <TypeChip type={type} types={types} />
        <h1 id="node-title" tabindex={-1}>
          <bdi>{shown(labelOf(node), 200)}</bdi>
        </h1>
        {isNamed(node) && <bdi class="id">{shown(node.id, 120)}</bdi>}
      </div>
      {attributes.length > 0 && (
        <dl class="attributes">
          {attributes.map(([name, value]) => (
            <div key={name}>
              <dt>{shown(name, 40)}</dt>
              <dd>
                <bdi>{shown(String(value), 120)}</bdi>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {!node.links.length && <p class="quiet">No edge leads to or from this {shown(type, 40)}.</p>}
      <dl class="links">
        {node.links.map((link) => (
          <div key={`${link.link} ${link.node_type}`}>
            <dt>
              <span class="degree">{count(link.degree, shown(link.node_type, 30))}</span>{" "}
              <span class="quiet">{shown(link.link, 40)}</span>
            </dt>
            <dd>
              {link.neighbours.slice(0, limit).map((other) => (
                <NodeLink key={other.id} node={{ ...other, node_type: link.node_type }} most={40} />
              ))}
              {link.degree > Math.min(link.neighbours.length, limit) && (
                <span class="quiet">and {count(link.degree - Math.min(link.neighbours.length, limit))} more</span>
              )}
            </dd>
          </div>
        ))}
      </dl>
      <div class="tools">
        {node.links.length > 0 && (
          <button type="button" aria-expanded={isDrawn} onClick={() => setDrawn(!isDrawn)}>
            {isDrawn ? "Hide the picture" : "Draw its neighbourhood"}
          </button>
        )}
        {hidden && limit === FEW && (
          <button type="button" onClick={() => setLimit(MANY)}>
            List more neighbours
          </button>
        )}
        <a class="button" href={linkTo({ view: "relate", target: null, targetType: null })}>
          How is it related to …?
        </a>
        <a class="button" href={linkTo({ build: true, path: shown(type, 200) })}>
          Build a meta-path
        </a>
      </div>
      {isDrawn && <Neighbourhood graph={graph} node={node} types={types} />}
    </section>
  );
}

/** Say what to type, in the words of the graph. */
export function promptFor(schema) {
  const names = schema.node_types.map((type) => shown(type.node_type, 24));
  const [first = "node", second] = names;
  return `${article(first)} ${first}${second ? `, ${article(second)} ${second}` : ""}${names.length > 2 ? " …" : ""}`;
}
