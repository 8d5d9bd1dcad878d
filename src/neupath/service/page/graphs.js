// What the page asks of a graph: meta-paths, searches and explanations.

import { get, getCached, graphPath, post } from "./requests.js";

const LEAST_HITS = 100; // hits to count ties and draw the histogram from, whatever is listed

/** Read the graphs, measures and models of the service. */
export async function readServed() {
  const [graphs, measures, models] = await Promise.all([get("/graphs"), get("/measures"), get("/models")]);
  return { graphs, measures, models };
}

/** Parse a meta-path, or the beginning of one. */
export async function readPath(graph, text) {
  return (await getCached(graphPath(graph, "/metapaths"), { prefix: text })).prefix;
}

/** List meta-paths from a node type and back. */
export async function suggestPaths(graph, type, maxLength) {
  const parameters = { source_type: type, max_length: maxLength, limit: 40 };
  return (await getCached(graphPath(graph, "/metapaths"), parameters)).suggestions;
}

/** Return a meaning as request parameters; a measure over the whole graph needs the type of the node. */
export function parametersOf(meaning, type) {
  if (meaning.mix) return { combination: meaning.mix };
  if (meaning.model) return { model: meaning.model };
  return meaning.whole ? { measure: meaning.measure, node_type: type } : meaning;
}

export async function search(graph, meaning, { query, type, k, where }, signal) {
  const parameters = { ...parametersOf(meaning, type), k: Math.max(k, LEAST_HITS) };
  if (!meaning.mix) return get(graphPath(graph, "/search"), { ...parameters, query, where }, signal);
  const [answer] = await post(graphPath(graph, "/search"), { ...parameters, queries: [query], where }, signal);
  return answer;
}

const GROUPS = 12;
const PATHS_OF_GROUP = 12;

export function explain(graph, meaning, { query, type, target, by, k }, signal) {
  const path = graphPath(graph, "/explain");
  const parameters = { query, target, by: by ?? undefined, limit: GROUPS, paths: PATHS_OF_GROUP };
  if (meaning.mix) return post(path, { ...parameters, combination: meaning.mix }, signal);
  return get(path, { ...parametersOf(meaning, type), ...parameters, k }, signal);
}

/** Return the types of a meaning, and why it cannot be searched, if so. */
export async function resolve(graph, meaning, served) {
  if (meaning.model) {
    const model = served.models.find((one) => one.name === meaning.model && one.graphs.includes(graph));
    if (!model) return { types: [], error: `No model ${meaning.model} fits this graph; choose a measure.` };
    return { types: [model.source_type, model.target_type], isModel: true };
  }
  if (meaning.whole) return { types: [] };
  const parsed = await readPath(graph, meaning.mix ? meaning.mix[0].metapath : meaning.metapath);
  const undefinedHere =
    !meaning.mix && parsed.valid && served && !parsed.measures.includes(meaning.measure)
      ? `${meaning.measure} needs a meta-path that goes out and back; extend it, or use ${parsed.measures[0]}.`
      : null;
  return { types: parsed.node_types, parsed, error: parsed.error ?? undefinedHere };
}
