// What the page asks of a graph: meta-paths, searches and explanations.

import { get, getCached, graphPath, post } from "./requests.js";
import { notify } from "./store.js";

const LEAST_HITS = 100; // hits to count ties and draw the histogram from, whatever is listed

let servedVersion = 0;
const titles = new Map(); // of models, by name

/** What people call a model: what it was trained on and when, or else its name. */
export const modelTitle = (name) => titles.get(name) ?? name;

/** Write a time of the service as the clock of this browser has it. */
export const when = (seconds) =>
  new Date(1000 * seconds).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
  });

/** The key of what the service serves; it changes with `refreshServed`. */
export const servedKey = () => ["served", servedVersion];

/** Read again what is served, since a job has made a model. */
export function refreshServed() {
  servedVersion += 1;
  notify();
}

/** Read the graphs, measures and models of the service. */
export async function readServed() {
  const [graphs, measures, models] = await Promise.all([get("/graphs"), get("/measures"), get("/models")]);
  for (const { name, title, created } of models) titles.set(name, created ? `${title}, ${when(created)}` : title);
  return { graphs, measures, models };
}

/** Parse a meta-path, or the beginning of one. */
export async function readPath(graph, text) {
  return (await getCached(graphPath(graph, "/metapaths"), { prefix: text })).prefix;
}

/** List meta-paths from a node type and back, or to another type. */
export async function suggestPaths(graph, type, maxLength, targetType = type) {
  const target = targetType === type ? null : targetType;
  const parameters = { source_type: type, target_type: target, max_length: maxLength, limit: 40 };
  return (await getCached(graphPath(graph, "/metapaths"), parameters)).suggestions;
}

/** Return a meaning as request parameters; a measure over the whole graph needs the type of the node. */
export function parametersOf(meaning, type) {
  if (meaning.mix) return { combination: meaning.mix };
  if (meaning.model) return { model: meaning.model };
  return meaning.whole ? { measure: meaning.measure, node_type: type } : meaning;
}

/** All nodes of the query: one, or those of a set; those that count against a hit come last. */
export const queriesOf = ({ query, members, less }) => [...new Set([query, ...members, ...less])];

/** The nodes of a set as request fields, with weights where some count against a hit. */
export function setOf(asked) {
  const queries = queriesOf(asked);
  const isLess = (id) => id !== asked.query && asked.less.includes(id);
  return { queries, ...(asked.less.length ? { weights: queries.map((id) => (isLess(id) ? -1 : 1)) } : {}) };
}

/** The body of a search for one node or a set; for a set and a combination, the only form there is. */
export function searchBody(meaning, type, { k, where, unless, ...asked }) {
  const set = setOf(asked);
  return {
    ...parametersOf(meaning, type),
    ...set,
    ...(set.queries.length > 1 ? { together: true } : {}),
    k,
    ...(where.length ? { where } : {}),
    ...(unless.length ? { unless } : {}),
  };
}

export async function search(graph, meaning, asked, signal) {
  const { query, members, less, type, where, unless } = asked;
  const [path, k] = [graphPath(graph, "/search"), Math.max(asked.k, LEAST_HITS)];
  if (!meaning.mix && !members.length && !less.length)
    return get(path, { ...parametersOf(meaning, type), k, query, where, unless }, signal);
  const [answer] = await post(path, searchBody(meaning, type, { ...asked, k }), signal);
  return answer;
}

const GROUPS = 12;
const PATHS_OF_GROUP = 12;
const MOST_GROUPS = 1000; // of which a service lists one path each

/** Why a hit has its score: through `set.queries`, by its heaviest groups, or with `all` by all of them. */
export async function explain(graph, meaning, { set, type, target, by, k, all = false }, signal) {
  const path = graphPath(graph, "/explain");
  const extent = all ? { limit: MOST_GROUPS, paths: 1 } : { limit: GROUPS, paths: PATHS_OF_GROUP };
  const common = { target, by: by ?? undefined, ...extent };
  if (set.queries.length > 1) return groupsOfSet(await post(path, { ...meaning, ...set, ...common }, signal));
  const parameters = { query: set.queries[0], ...common };
  if (meaning.mix) return post(path, { ...parameters, combination: meaning.mix }, signal);
  return get(path, { ...parametersOf(meaning, type), ...parameters, k }, signal);
}

/** Put the paths of the members of a set into the groups that they run through. */
function groupsOfSet(why) {
  const isSame = (one) => (other) => other.node_type === one.node_type && other.id === one.id;
  const groups = why.groups.map((group) => {
    const parts = why.members
      .map((member) => member.groups.find(isSame(group)))
      .filter((part) => part?.instances.length);
    const instances = parts.flatMap((part) => part.instances).sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
    const drawn = parts.map((part) => ({ ...part.instances[0], share: part.score })); // the heaviest path of each member
    return { ...group, drawn, instances: instances.slice(0, PATHS_OF_GROUP) };
  });
  const rest = groups.reduce((left, group) => ({ paths: left.paths - group.paths, share: left.share - group.share }), {
    paths: why.members.reduce((sum, member) => sum + member.paths, 0),
    share: 1,
  });
  return { ...why, groups, more_groups: { groups: why.more_groups, ...rest } };
}

const LONGEST = 4; // steps of a meta-path that is inferred while one waits
const SUGGESTED = 20;
let inferred = { key: null, answer: null };

/** The body of an inference from pairs; a job may take longer meta-paths. */
export const inferBody = (type, pairs) => ({
  pairs: pairs.map(([query, target, value]) => ({ query, target, score: value })),
  node_type: type,
  suggest: SUGGESTED,
});

/** Infer what pairs mean: the one request behind the list that they rank and the page that explains it. */
export function infer(graph, type, pairs, skip = []) {
  const key = JSON.stringify([graph, type, pairs, skip]);
  if (inferred.key !== key) {
    const answer = post(graphPath(graph, "/infer"), { ...inferBody(type, pairs), skip, max_length: LONGEST });
    inferred = { key, answer };
    answer.catch(() => (inferred = { key: null, answer: null }));
  }
  return inferred.answer;
}

/** Return the types of a meaning, and why it cannot be searched, if so. */
export async function resolve(graph, meaning, served) {
  if (meaning.model) {
    const model = served.models.find((one) => one.name === meaning.model && one.graphs.includes(graph));
    if (!model) return { types: [], error: `No model ${modelTitle(meaning.model)} fits this graph; choose a measure.` };
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
