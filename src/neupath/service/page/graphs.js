// Client of the graph endpoints: the schema, nodes, meta-paths, search and explain, with a cache per graph.

import { get, graphPath, post } from "./calls.js";

const cache = new Map();
export const served = { graphs: [], measures: [], models: [] };

/** Whether a measure works on the whole graph and takes no meta-path. */
export function isWhole(measure) {
  return served.measures.some((one) => one.name === measure && one.metapaths === "none");
}

function cached(key, read) {
  if (!cache.has(key))
    cache.set(
      key,
      read().catch((error) => {
        cache.delete(key);
        throw error;
      }),
    );
  return cache.get(key);
}

/** Read the graphs, measures and models of the service. */
export async function readServed() {
  [served.graphs, served.measures] = await Promise.all([get("/graphs"), get("/measures")]);
  await readModels();
}

/** Read the models again; a finished job adds one. */
export async function readModels() {
  served.models = await get("/models");
}

export function readSchema(graph) {
  return cached(`schema ${graph}`, () => get(graphPath(graph, "/schema")));
}

/** Parse a meta-path, or the beginning of one. */
export function readPath(graph, text) {
  return cached(
    `path ${graph} ${text}`,
    async () => (await get(graphPath(graph, "/metapaths"), { prefix: text })).prefix,
  );
}

/** List meta-paths from a node type and back. */
export function suggestPaths(graph, from, maxLength = 4) {
  const parameters = { source_type: from, max_length: maxLength, limit: 60 };
  return cached(
    `from ${graph} ${from} ${maxLength}`,
    async () => (await get(graphPath(graph, "/metapaths"), parameters)).suggestions,
  );
}

export function findNodes(graph, type, text, limit = 12, signal = undefined) {
  return get(graphPath(graph, "/nodes"), { node_type: type, text, limit }, { signal });
}

/** Look up the name of a node by its id. */
export function readNode(graph, type, id) {
  return cached(`node ${graph} ${type} ${id}`, async () => {
    const { nodes } = await findNodes(graph, type, id, 20);
    const match = nodes.find((node) => String(node.id) === String(id));
    return { node_type: type, id, name: match?.name ?? null };
  });
}

/** Return the source and target type of a meaning and whether it is valid; `error` says why it is not. */
export async function resolve(graph, meaning) {
  if (meaning.model) {
    const model = served.models.find((one) => one.name === meaning.model && one.graphs.includes(graph));
    if (!model) return { valid: false, error: `No model ${meaning.model} fits this graph; choose a measure.` };
    return { valid: true, source: model.source_type, target: model.target_type, explains: model.explains };
  }
  if (meaning.whole) return { valid: true, ...(await typeOf(graph, meaning.start)), explains: false };
  const parsed = await readPath(graph, meaning.mix ? meaning.mix[0].metapath : meaning.metapath);
  const [source, target] = [parsed.node_types[0], parsed.node_types.at(-1)];
  if (!parsed.valid || meaning.mix) return { ...parsed, source, target, explains: true };
  const defined = parsed.measures.includes(meaning.measure);
  const error = defined
    ? null
    : `${meaning.measure} needs a meta-path that goes out and back; extend it, or use ${parsed.measures[0]}.`;
  return { ...parsed, valid: defined, isPath: true, source, target, error, explains: true };
}

/** Return the first type of a meta-path as source and target; without one, the first type of the graph. */
async function typeOf(graph, path) {
  const { node_types: types } = await readSchema(graph);
  const names = types.map((type) => type.node_type);
  const text = path.trim().toLowerCase();
  const [first] = (await readPath(graph, path)).node_types;
  const source = first ?? names.find((name) => name.toLowerCase() === text) ?? names[0];
  return { source, target: source };
}

/** Return a meaning as request parameters. */
async function parametersOf(graph, meaning) {
  return meaning.whole ? { measure: meaning.measure, node_type: (await resolve(graph, meaning)).source } : meaning;
}

/** Search; with `accept`, return the response in that format as a blob. */
export async function search(graph, meaning, query, k, { signal, accept } = {}) {
  const headers = accept ? { Accept: accept } : {};
  if (meaning.mix) {
    const answers = await post(
      graphPath(graph, "/search"),
      { queries: [query], combination: meaning.mix, k },
      { signal, headers },
    );
    return accept ? answers : answers[0];
  }
  const parameters = await parametersOf(graph, meaning);
  return get(graphPath(graph, "/search"), { ...parameters, query, k }, { signal, headers });
}

export async function explain(graph, meaning, query, target, limit, signal) {
  const path = graphPath(graph, "/explain");
  const parameters = { query, target, limit, paths: 0 }; // the page lists the heaviest paths of all, not of each group
  if (meaning.mix) return post(path, { ...parameters, combination: meaning.mix }, { signal });
  return get(path, { ...(await parametersOf(graph, meaning)), ...parameters, k: 1000 }, { signal });
}

/** Choose the first meta-path: from a type with names, out and back along the relation with the most edges. */
export async function firstPath(graph) {
  const { node_types: types, steps, relations } = await readSchema(graph);
  const linked = types.filter((type) => steps.some((step) => step.source === type.node_type));
  const ways = (type) => steps.filter((step) => step.source === type.node_type).length;
  const [first] = linked.sort((a, b) => b.named - a.named || ways(b) - ways(a) || b.nodes - a.nodes);
  if (!first) return "";
  const edges = (path) =>
    Math.max(
      ...relations
        .filter((r) => [r.source, r.target].sort().join() === [...path.node_types.slice(0, 2)].sort().join())
        .map((r) => r.edges),
    );
  const short = (await suggestPaths(graph, first.node_type, 2)).sort((a, b) => edges(b) - edges(a));
  return short[0]?.metapath ?? "";
}
