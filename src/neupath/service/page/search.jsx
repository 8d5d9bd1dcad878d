// The search: hits of one meaning or of two side by side, filters, marks, and the explanation of the chosen hit.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { NodeBox } from "./box.jsx";
import { Filters } from "./filters.jsx";
import { MarksBar, marksOf, markHit } from "./examples.jsx";
import { queriesOf, resolve, search, setOf } from "./graphs.js";
import { HitList, useMoves } from "./hits.jsx";
import { JobRun } from "./jobs.jsx";
import { HitMap } from "./map.jsx";
import { MeaningBuilder, MeasureSelect } from "./meaning.jsx";
import { get, graphPath, post, useAnswer } from "./requests.js";
import { ShareMenu } from "./share.jsx";
import { atNode, change, isSaved, linkTo, meaningOf, remember, saveSearch, unsaveSearch } from "./store.js";
import {
  announce,
  article,
  capital,
  count,
  isolated,
  labelOf,
  meaningWords,
  Panel,
  pluralOf,
  Problem,
  shown,
  TypeChip,
  Waiting,
} from "./words.jsx";
import { Why } from "./why.jsx";

const MOST_TESTED = 100; // hits that are compared with chance
const NOT_AMONG = "The graph has changed since: it was not among the hits that were compared with chance";
const SIZES = [10, 20, 50, 100, 200, 500, 1000];

/** Find the node that the state names; a link may lack its type, which the meta-path then says. */
function useQuery(state, type) {
  const { data, error } = useAnswer(type ? ["query", state.graph, type, state.query] : null, (signal) =>
    get(graphPath(state.graph, "/node"), { node_type: type, id: state.query, limit: 0 }, signal),
  );
  return { node: data ?? { node_type: type, id: state.query, name: null }, error, isKnown: data !== null };
}

/** The nodes of the query: the first, and those that were added to it, with their names once they are known. */
function useMembers(state, type, node) {
  const ids = queriesOf(state).slice(1);
  const { data, error } = useAnswer(
    ids.length && type ? ["members", state.graph, type, ids] : null,
    (signal) => post(graphPath(state.graph, "/nodes"), { node_type: type, ids }, signal),
    `${state.graph} ${type}`,
  );
  const named = new Map((data?.nodes ?? []).filter(Boolean).map((one) => [String(one.id), one]));
  const isLess = (id) => state.less.includes(id);
  const others = ids.map((id) => ({ ...(named.get(id) ?? { node_type: type, id, name: null }), isLess: isLess(id) }));
  return { nodes: [node, ...others], error };
}

/** The words of a title between the nodes of a query: all of a few, or the first ones of many. */
function titleParts(nodes) {
  const parts = [];
  for (const isLess of [false, true]) {
    const own = nodes.filter((node) => Boolean(node.isLess) === isLess);
    const listed = own.slice(0, own.length > 3 ? 2 : 3);
    const others = own.length - listed.length;
    listed.forEach((node, place) => {
      const glue = place < listed.length - 1 || others ? ", " : " and ";
      parts.push({ before: place ? glue : isLess ? ", less like " : "", node });
    });
    if (others) parts.push({ before: ` and ${count(others, "other")}`, node: null });
  }
  return parts;
}

const membersWords = (nodes) =>
  titleParts(nodes)
    .map(({ before, node }) => before + (node ? shown(labelOf(node), 60) : ""))
    .join("");

/** The answer of one side, and what it means. */
function useSide(state, side, served, type) {
  const isWhole = (name) =>
    name !== "pathsim" && (served?.measures.some((one) => one.name === name && one.metapaths === "none") ?? false);
  const needsServed = side === "b" || state.model !== null || state.measure !== "pathsim";
  const meaning = (side === "a" || state.compare) && (served || !needsServed) ? meaningOf(state, side, isWhole) : null;
  const { graph, query, members, less, k, where, unless } = state;
  const resolved = useAnswer(
    meaning ? ["resolve", graph, meaning, Boolean(served)] : null,
    () => resolve(graph, meaning, served),
    graph,
  );
  const problem = resolved.isLoading ? null : (resolved.data?.error ?? startProblem(resolved.data, type));
  const isReady = meaning !== null && !problem && (!meaning.whole || type);
  const key = isReady ? ["search", graph, meaning, query, members, less, type, Math.max(k, 100), where, unless] : null;
  const answer = useAnswer(
    key,
    (signal) => search(graph, meaning, { query, members, less, type, k, where, unless }, signal),
    `${graph}\n${query}`,
  );
  const types = resolved.isLoading ? [] : (resolved.data?.types ?? []);
  return { meaning, ...answer, types, parsed: resolved.data?.parsed, problem: problem && { message: problem } };
}

function startProblem(resolved, type) {
  const start = resolved?.types[0];
  return start && type && start !== type
    ? `This meaning starts at ${start}, and the node is ${type}; choose a meaning from ${type}.`
    : null;
}

export function SearchPage({ state, served, schema, types, isNarrow }) {
  const { graph, query, target, compare } = state;
  const pathStart = useAnswer(state.queryType || !state.path ? null : ["start", graph, state.path], () =>
    resolve(graph, { metapath: state.path, measure: state.measure }, null),
  );
  const type = state.queryType ?? pathStart.data?.types[0] ?? null;
  const { node, error: queryError, isKnown } = useQuery(state, type);
  const { nodes, error: membersError } = useMembers(state, type, node);
  const isSet = nodes.length > 1;
  const a = useSide(state, "a", served, type);
  const b = useSide(state, "b", served, type);
  const sides = { a, b };
  const [evidence, setEvidence] = useState({ key: null, values: null });
  const evidenceKey = JSON.stringify([graph, query, state.where, state.unless, a.meaning, state.k]);
  const words = meaningWords(a.meaning, a.types);
  const targetType = a.types.at(-1) ?? type;
  const title = `${targetType ? capital(pluralOf(shown(targetType, 40))) : "Nodes"} like ${membersWords(nodes)} by ${words}`;
  const own = { ...state, queryType: type, target: null, group: null, by: null };
  const isNamed = !a.meaning?.metapath || a.types.length > 0; // before, the title has the meta-path instead of its words
  const isSearched = a.data !== null && !a.isStale && isKnown && isNamed;
  useEffect(() => {
    if (isSearched) remember(title, own);
  }, [isSearched && title]);
  const chosen = chosenHit(state, sides, targetType);
  const chosenMeaning = sides[state.side]?.meaning ?? a.meaning;
  const explains = chosen && chosenMeaning && !chosenMeaning.whole;
  const isOneType = type !== null && targetType === type;
  const tested = Math.min(state.k, MOST_TESTED);
  const failure = queryError ?? membersError ?? a.problem ?? a.error;
  const explainsSet = !isSet || Boolean(chosenMeaning?.metapath);
  return (
    <div class={`search-page ${chosen ? "explaining" : ""} ${compare ? "comparing" : ""}`}>
      <SearchHead
        title={title}
        isSearched={isSearched}
        savedTitle={[title, ...state.where, ...state.unless.map((path) => `not by ${path}`)].join(", ")}
        own={own}
        state={state}
        nodes={nodes}
        type={type}
        types={types}
        words={words}
        side={a}
        served={served}
        targetType={targetType}
      />
      {isSet && <Members state={state} nodes={nodes} type={type} types={types} />}
      {state.build && served && schema && (
        <div class="builders">
          {["a", ...(compare ? ["b"] : [])].map((side) => (
            <MeaningBuilder
              key={`${side} ${graph} ${type}`}
              state={{ ...state, queryType: type }}
              served={served}
              schema={schema}
              side={side}
              isNarrow={isNarrow}
            />
          ))}
        </div>
      )}
      <div class="results">
        <section class="list" aria-labelledby="search-title">
          {failure && (
            <Problem error={failure} retry={failure === a.error ? a.retry : null}>
              {!isSet && <AsJob error={a.error} state={state} meaning={a.meaning} />}
            </Problem>
          )}
          {isOneType && <MarksBar state={state} type={type} node={node} hits={a.isStale ? null : a.data?.hits} />}
          <Status side={a} state={state} />
          <Panel what="This list" about={JSON.stringify([evidenceKey, state.show, Boolean(a.data)])}>
            {state.show === "map" && a.data && !a.isStale ? (
              <HitMap
                state={state}
                meaning={a.meaning}
                type={type}
                targetType={targetType}
                types={types}
                nodes={nodes}
                hits={a.data.hits.slice(0, Math.min(state.k, 60))}
              />
            ) : (
              <Columns
                sides={sides}
                state={state}
                type={type}
                canMark={isOneType}
                canAdd={isOneType}
                evidence={evidence.key === evidenceKey ? (hit) => chanceOf(hit, evidence.values, tested) : null}
              />
            )}
          </Panel>
          <Panel what="This part" about={evidenceKey}>
            <Filters state={state} side={a} schema={schema} types={types} targetType={targetType}>
              {a.meaning?.metapath && !isSet && a.data?.hits.length > 0 && (
                <JobRun
                  key={evidenceKey}
                  request={{
                    kind: "significance",
                    graph,
                    queries: [query],
                    ...a.meaning,
                    k: tested,
                    where: state.where,
                    unless: state.unless,
                  }}
                  label="Could these scores be chance?"
                  isAsked={state.chance}
                  ask={() => change({ chance: true }, { replace: true })}
                  onResult={({ results: [result] }) =>
                    setEvidence({
                      key: evidenceKey,
                      values: new Map(result.hits.map((hit) => [String(hit.id), hit.p_value])),
                    })
                  }
                >
                  {() => (
                    <p class="quiet">
                      p is the probability of such a score by chance, given how many edges both nodes have.
                    </p>
                  )}
                </JobRun>
              )}
            </Filters>
          </Panel>
        </section>
        {explains && !explainsSet && (
          <section id="why">
            <p class="empty">
              The score of several nodes together is explained along one meta-path; choose one, or remove nodes from the
              query.
            </p>
          </section>
        )}
        {explains && explainsSet && (
          <Panel
            what="This explanation"
            about={JSON.stringify([graph, chosenMeaning, chosen.id, state.by, state.group])}
          >
            <Why
              state={{ ...state, queryType: type }}
              meaning={chosenMeaning}
              types={types}
              queries={nodes}
              set={setOf(state)}
              target={chosen}
              k={state.k}
              version={sides[state.side]?.data?.version}
              rankAgain={sides[state.side]?.retry}
            />
          </Panel>
        )}
        {chosen && chosenMeaning?.whole && (
          <section id="why">
            <p class="empty">
              {chosenMeaning.measure} looks at the whole graph, not along a meta-path, so there are no paths to show.{" "}
              <a href={linkTo({ view: "relate", targetType: targetType })}>See all meta-paths between the two.</a>
            </p>
          </section>
        )}
      </div>
    </div>
  );
}

/** The p-value of a hit, and what it is, or why there is none. */
function chanceOf(hit, values, tested) {
  const p = values.get(String(hit.id)) ?? null;
  if (p !== null) return { p, why: "Probability of such a score by chance, given the degrees" };
  const why = hit.rank > tested ? `Only the best ${count(tested, "hit")} are compared with chance` : NOT_AMONG;
  return { p, why };
}

/** The hit that is explained; a link may name a node that is not among the hits, whose absence is then explained. */
function chosenHit(state, sides, targetType) {
  if (state.target === null) return null;
  const hits = sides[state.side]?.data?.hits ?? [];
  const hit = hits.find((one) => String(one.id) === state.target);
  return { node_type: targetType, ...(hit ?? { id: state.target, name: null }) };
}

/** The nodes of a set, each with a button that removes it, and a box that adds another. */
function Members({ state, nodes, type, types }) {
  const remove = (node) => {
    const isOther = (id) => id !== String(node.id);
    const less = state.less.filter(isOther);
    const [query, ...members] = [state.query, ...state.members].filter((id) => isOther(id));
    change({ query, members, less, target: null, group: null, by: null });
    announce(`${labelOf(node)} is no longer part of the query`);
  };
  return (
    <div class="members" role="group" aria-label="The nodes of the query, together">
      <div class="chips">
        {nodes.map((node, place) => (
          <button
            type="button"
            class={`chip member ${node.isLess ? "less" : ""}`}
            disabled={!place && !state.members.length}
            key={node.id}
            data-id={node.id}
            aria-label={`Remove ${isolated(labelOf(node), 80)} from the query`}
            onClick={() => remove(node)}
          >
            {node.isLess && <span class="quiet">less like</span>}
            <bdi>{shown(labelOf(node), 40)}</bdi> ✕
          </button>
        ))}
      </div>
      <NodeBox
        id="add-member"
        graph={state.graph}
        types={types}
        only={type}
        label="Add a node to the query"
        placeholder={`Add ${article(type)} ${shown(type, 30)}`}
        onNode={(node) => addMember(state, node)}
      />
    </div>
  );
}

/** Search for a node together with those that are there, or for what is less like it. */
function addMember(state, node, isLess = false) {
  const id = String(node.id);
  if (queriesOf(state).includes(id)) return;
  const field = isLess ? "less" : "members";
  change({ [field]: [...state[field], id], target: null, group: null, by: null });
  announce(isLess ? `hits are now less like ${labelOf(node)}` : `${labelOf(node)} is now part of the query`);
}

/** Keep a search in this browser, under its title, or forget it. */
function SaveButton({ title, own, isReady }) {
  const saved = isSaved(own);
  const toggle = () => {
    if (saved) unsaveSearch(own);
    else saveSearch(title, own);
    announce(saved ? "no longer saved" : "saved; the first page lists it");
  };
  return (
    <button type="button" id="save" aria-pressed={saved} disabled={!isReady && !saved} onClick={toggle}>
      {saved ? "★ Saved" : "☆ Save"}
    </button>
  );
}

function SearchHead({
  title,
  isSearched,
  savedTitle,
  own,
  state,
  nodes,
  type,
  types,
  words,
  side,
  served,
  targetType,
}) {
  const { compare, build } = state;
  const startCompare = () => {
    const other = side.parsed?.measures.find((name) => name !== state.measure) ?? state.measure;
    change(
      compare
        ? { compare: false, side: "a", target: state.side === "b" ? null : state.target }
        : {
            compare: true,
            build: true,
            path2: state.path2 || state.path,
            measure2: state.path2 ? state.measure2 : other,
          },
    );
  };
  const kind = targetType ? capital(pluralOf(shown(targetType, 40))) : "Nodes";
  return (
    <header class="search-head">
      <div class="title">
        {type && <TypeChip type={type} types={types} />}
        <h1 id="search-title" tabindex={-1} title={title}>
          <span class="weak">{kind} like</span>{" "}
          {titleParts(nodes).map(({ before, node }) => (
            <span key={node?.id ?? before}>
              <span class="weak">{before}</span>
              {node && (
                <a href={linkTo(atNode({ ...node, node_type: type }))}>
                  <bdi>{shown(labelOf(node), 80)}</bdi>
                </a>
              )}
            </span>
          ))}{" "}
          <span class="weak">by</span> {words}
        </h1>
      </div>
      <p class="quiet path">
        {side.meaning?.mix
          ? side.meaning.mix.map((part) => `${part.weight.toFixed(2)} × ${shown(part.metapath, 80)}`).join(" + ")
          : shown(side.meaning?.metapath ?? "", 200)}
      </p>
      <div class="tools">
        <button
          type="button"
          id="change"
          aria-expanded={build}
          aria-pressed={build}
          onClick={() => change({ build: !build }, { replace: true })}
        >
          Change meaning
        </button>
        {served && <MeasureSelect state={state} served={served} side="a" parsed={side.parsed} />}
        {compare && served && <MeasureSelect state={state} served={served} side="b" parsed={null} />}
        <button type="button" id="compare" aria-pressed={compare} onClick={startCompare}>
          Compare two
        </button>
        <button
          type="button"
          id="map"
          aria-pressed={state.show === "map"}
          onClick={() => change({ show: state.show === "map" ? "list" : "map" }, { replace: true })}
        >
          Map
        </button>
        <SaveButton title={savedTitle} own={own} isReady={isSearched} />
        <ShareMenu
          state={state}
          meaning={side.meaning}
          hits={side.data?.hits ?? []}
          type={type}
          version={side.data?.version}
        />
      </div>
    </header>
  );
}

/** Offer a search that takes too long as a job over all nodes. */
function AsJob({ error, state, meaning }) {
  if (error?.status !== 504 || !meaning?.metapath) return null;
  const { graph, k, where, unless } = state;
  const request = { kind: "join", graph, ...meaning, k, where, unless };
  return (
    <JobRun request={request} label="Search from every node, as a job">
      {() => (
        <p>
          The result is in <a href={linkTo({ view: "jobs" })}>the list of jobs</a>.
        </p>
      )}
    </JobRun>
  );
}

/** What the list shows, in a line: how many hits, exact or learned, and of which version. */
function Status({ side, state }) {
  const { data, isLoading, isStale, meaning } = side;
  const ran = useRef(null);
  const text = data ? describeHits(data, state.k) : "";
  useEffect(() => {
    if (data && !isStale && ran.current !== data)
      announce(`${text}${data.hits.length ? `, the best is ${labelOf(data.hits[0])}` : ""}`);
    ran.current = data;
  }, [data, isStale]);
  const waits = `Searching by ${meaningWords(meaning)}`;
  return (
    <div class="bar-of-tools">
      <p id="found" class="quiet grow" role="status">
        {isLoading && meaning && !side.problem
          ? `${waits} …${isStale ? ` Below are the hits of ${data.measure}${data.metapath ? ` on ${shown(data.metapath, 80)}` : ""}.` : ""}`
          : text}
      </p>
      <label class="small">
        Show{" "}
        <select
          id="k"
          value={String(state.k)}
          onChange={(event) => change({ k: Number(event.target.value) }, { replace: true })}
        >
          {[...new Set([...SIZES, state.k])]
            .sort((x, y) => x - y)
            .map((size) => (
              <option key={size}>{size}</option>
            ))}
        </select>
      </label>
    </div>
  );
}

function describeHits(data, k) {
  const { length } = data.hits;
  const total =
    length >= Math.max(k, 100)
      ? `the best ${count(k)}`
      : length > k
        ? `${count(k)} of ${count(length)} hits`
        : count(length, "hit");
  return `${total}, ${data.exact ? "exact" : "learned"}${data.version === undefined ? "" : `, version ${data.version}`}`;
}

/** One list, or two with lines between the hits that both have. */
function Columns({ sides, state, type, canMark, canAdd, evidence }) {
  const { compare } = state;
  return (
    <div class={`columns ${sides.a.isStale ? "stale" : ""}`} aria-busy={sides.a.isLoading}>
      <Column
        side="a"
        answer={sides.a}
        other={compare ? sides.b : null}
        state={state}
        type={type}
        canMark={canMark && !compare}
        canAdd={canAdd && !compare}
        evidence={evidence}
      />
      {compare && <Ties sides={sides} k={state.k} />}
      {compare && <Column side="b" answer={sides.b} other={sides.a} state={state} type={type} canMark={false} />}
    </div>
  );
}

const describeMeaning = (meaning) =>
  meaning?.metapath ? `${meaning.measure} on ${shown(meaning.metapath, 90)}` : meaningWords(meaning);

function Column({ side, answer, other, state, type, canMark, canAdd = false, evidence = null }) {
  const { data, meaning, isStale } = answer;
  const subject = JSON.stringify([state.graph, queriesOf(state), state.where, state.unless]);
  const before = useMoves(subject, describeMeaning(isStale ? null : meaning), isStale ? null : (data?.hits ?? null));
  const choose = (hit) =>
    change({
      target: String(hit.id) === state.target && side === state.side ? null : String(hit.id),
      side,
      group: null,
      by: null,
    });
  const lost =
    before && data
      ? [...before.ranks].filter(([id, rank]) => rank <= state.k && !data.hits.some((hit) => String(hit.id) === id))
          .length
      : 0;
  const problem = side === "b" ? (answer.problem ?? answer.error) : null;
  return (
    <div class="column">
      {state.compare && (
        <h2 id={`title-${side}`}>
          <span class={`tag ${side}`}>{side.toUpperCase()}</span> {describeMeaning(meaning)}
        </h2>
      )}
      {problem && <Problem error={problem} />}
      {before && !isStale && (
        <p class="note" id={`note-${side}`}>
          Compared with {before.meaning}
          {lost ? `; ${count(lost, "hit")} left the list` : ""}.
        </p>
      )}
      {data && !data.hits.length && !isStale && (
        <p class="empty">
          {capital(meaningWords(meaning, answer.types))} lead{meaning.whole || meaning.model ? "s" : ""} to no other node
          {state.less.length ? " that is more like the one than like the other" : ""}
          {state.where.length || state.unless.length ? " that meets the conditions" : ""}.
        </p>
      )}
      {data ? (
        <HitList
          side={side}
          label={side === "a" ? "Hits" : "Hits of the second meaning"}
          hits={data.hits}
          k={state.k}
          before={before}
          chosen={state.side === side ? state.target : null}
          marks={canMark ? marksOf(state, type) : null}
          choose={choose}
          evidence={evidence}
          add={canAdd ? (hit, isLess) => addMember(state, hit, isLess) : null}
          mark={canMark ? (hit, value) => markHit(state, type, hit, value) : null}
          other={
            other?.data ? new Map(other.data.hits.slice(0, state.k).map((hit) => [String(hit.id), hit.rank])) : null
          }
        />
      ) : (
        answer.isLoading && meaning && !answer.problem && <Waiting text="Searching" />
      )}
    </div>
  );
}

/** Lines between the two rows of each hit that both lists have. */
function Ties({ sides, k }) {
  const place = useRef(null);
  const [lines, setLines] = useState([]);
  useLayoutEffect(() => {
    const draw = () => {
      const { top } = place.current.getBoundingClientRect();
      const rows = (side) =>
        new Map([...document.querySelectorAll(`#hits-${side} .hit`)].map((row) => [row.dataset.id, row]));
      // where a row will come to rest: its rectangle would move with it
      const middle = (row) =>
        row.parentElement.getBoundingClientRect().top + row.offsetTop + row.offsetHeight / 2 - top;
      const [left, right] = [rows("a"), rows("b")];
      setLines(
        [...left]
          .filter(([id]) => right.has(id))
          .map(([id, row]) => ({ id, y0: middle(row), y1: middle(right.get(id)) })),
      );
    };
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(place.current.parentElement);
    return () => observer.disconnect();
  }, [sides.a.data, sides.b.data, k]);
  return (
    <svg ref={place} class="ties" aria-hidden="true">
      {lines.map(({ id, y0, y1 }) => (
        <path key={id} d={`M0 ${y0}C24 ${y0} 24 ${y1} 48 ${y1}`} />
      ))}
    </svg>
  );
}
