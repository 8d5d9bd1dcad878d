// Graphs: what is served, read once for each graph, and what a meaning says of it.

import { get, graphPath, post } from "./calls.js";

const known = new Map();
export const served = { graphs: [], measures: [], models: [] };

/** Whether a measure looks at the whole graph, and so takes no meta-path. */
export function isWhole(measure) {
  return served.measures.some((one) => one.name === measure && one.metapaths === "none");
}

function once(key, read) {
  if (!known.has(key))
    known.set(
      key,
      read().catch((error) => {
        known.delete(key);
        throw error;
      }),
    );
  return known.get(key);
}

/** Read what is served. */
export async function readServed() {
  [served.graphs, served.measures] = await Promise.all([get("/graphs"), get("/measures")]);
  await readModels();
}

/** Read the models again: a job that is done is one. */
export async function readModels() {
  served.models = await get("/models");
}

export function readSchema(graph) {
  return once(`schema ${graph}`, () => get(graphPath(graph, "/schema")));
}

/** Say what a text typed so far means as a meta-path. */
export function readPath(graph, text) {
  return once(
    `path ${graph} ${text}`,
    async () => (await get(graphPath(graph, "/metapaths"), { prefix: text })).prefix,
  );
}

/** List meta-paths from a type, out and back. */
export function suggestPaths(graph, from, maxLength = 4) {
  const words = { source_type: from, max_length: maxLength, limit: 60 };
  return once(
    `from ${graph} ${from} ${maxLength}`,
    async () => (await get(graphPath(graph, "/metapaths"), words)).suggestions,
  );
}

export function findNodes(graph, type, text, limit = 12, signal = undefined) {
  return get(graphPath(graph, "/nodes"), { node_type: type, text, limit }, { signal });
}

/** Return a node with its name, of which only the id is known. */
export function readNode(graph, type, id) {
  return once(`node ${graph} ${type} ${id}`, async () => {
    const { nodes } = await findNodes(graph, type, id, 20);
    const found = nodes.find((node) => String(node.id) === String(id));
    return { node_type: type, id, name: found?.name ?? null };
  });
}

/** Say from and to which types a meaning leads, and on what it is defined; `error` says why it does not. */
export async function resolve(graph, meaning) {
  if (meaning.model) {
    const model = served.models.find((one) => one.name === meaning.model && one.graphs.includes(graph));
    if (!model) return { valid: false, error: `No model ${meaning.model} fits this graph any more; choose a measure.` };
    return { valid: true, source: model.source_type, target: model.target_type, explains: model.explains };
  }
  if (meaning.whole) return { valid: true, ...(await typeOf(graph, meaning.start)), explains: false };
  const told = await readPath(graph, meaning.mix ? meaning.mix[0].metapath : meaning.metapath);
  const [source, target] = [told.node_types[0], told.node_types.at(-1)];
  if (!told.valid || meaning.mix) return { ...told, source, target, explains: true };
  const defined = told.measures.includes(meaning.measure);
  const error = defined
    ? null
    : `${meaning.measure} needs a meta-path that goes out and back; go on, or take ${told.measures[0]}.`;
  return { ...told, valid: defined, isPath: true, source, target, error, explains: true };
}

/** Return the type that a meta-path starts at, as source and target; the first of the graph where it has none yet. */
async function typeOf(graph, path) {
  const { node_types: types } = await readSchema(graph);
  const names = types.map((type) => type.node_type);
  const begun = path.trim().toLowerCase();
  const [first] = (await readPath(graph, path)).node_types;
  const source = first ?? names.find((name) => name.toLowerCase() === begun) ?? names[0];
  return { source, target: source };
}

/** Return a meaning as the words of a request. */
async function wordsOf(graph, meaning) {
  return meaning.whole ? { measure: meaning.measure, node_type: (await resolve(graph, meaning)).source } : meaning;
}

/** Search; with `accept`, for the bytes of another format. */
export async function search(graph, meaning, query, k, { signal, accept } = {}) {
  const headers = accept ? { Accept: accept } : {};
  if (meaning.mix) {
    const found = await post(
      graphPath(graph, "/search"),
      { queries: [query], combination: meaning.mix, k },
      { signal, headers },
    );
    return accept ? found : found[0];
  }
  const words = await wordsOf(graph, meaning);
  return get(graphPath(graph, "/search"), { ...words, query, k }, { signal, headers });
}

export async function explain(graph, meaning, query, target, limit, signal) {
  const path = graphPath(graph, "/explain");
  if (meaning.mix) return post(path, { query, target, limit, combination: meaning.mix }, { signal });
  return get(path, { ...(await wordsOf(graph, meaning)), query, target, limit }, { signal });
}

/** Choose what to begin with: a type that people know by name, and the best connected way out and back. */
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
