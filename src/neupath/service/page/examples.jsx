// Examples: marks on hits, re-ranking by them, and the page where pairs are scored, pasted, and what they mean is shown.

import { useEffect, useRef, useState } from "preact/hooks";
import { NodeBox } from "./box.jsx";
import { infer, inferBody, refreshServed, search } from "./graphs.js";
import { JobRun } from "./jobs.jsx";
import { graphPath, post, useAnswer } from "./requests.js";
import { atNode, change, linkTo } from "./store.js";
import {
  announce,
  article,
  Bar,
  capital,
  count,
  homonymWords,
  isolated,
  labelOf,
  NodeName,
  Problem,
  score,
  shown,
  Waiting,
} from "./words.jsx";

const ENOUGH = 3;
const MAX_ROWS = 200;
const MAX_PAIRS = 500;

// ---- Marks ----------------------------------------------------------------------------------------
const keyOf = ([query, target]) => JSON.stringify([String(query), String(target)]);

/** The pairs of a type; those of another type are not shown and go when one of this type is added. */
export const pairsOf = (state, type) => (state.type === type ? state.pairs : []);

/** The marks on the hits of the query, by id. */
export function marksOf(state, type) {
  const own = pairsOf(state, type).filter(([query]) => String(query) === state.query);
  return new Map(own.map(([, target, value]) => [String(target), value]));
}

/** Add pairs, or give those that are there another score; a score of null removes one. */
function addPairs(state, type, added) {
  const pairs = new Map(pairsOf(state, type).map((pair) => [keyOf(pair), pair]));
  for (const [query, target, value] of added) {
    if (value === null) pairs.delete(keyOf([query, target]));
    else pairs.set(keyOf([query, target]), [String(query), String(target), value]);
  }
  change({ type, pairs: [...pairs.values()] }, { replace: true });
}

export function markHit(state, type, hit, value) {
  addPairs(state, type, [[state.query, hit.id, value]]);
  announce(
    `${labelOf(hit)} ${value === null ? "is no longer marked" : value ? "is marked as similar" : "is marked as not similar"}`,
  );
}

const mixOf = (result) =>
  result.metapaths.map(({ metapath, weight }) => ({ measure: result.measure, metapath, weight }));

/** The marked hits among the first k, of one mark; and how well the list fits the marks: similar ones early, others not. */
function fitOf(hits, marks, k) {
  const listed = hits.slice(0, k).flatMap((hit, place) => {
    const value = marks.get(String(hit.id));
    return value === undefined ? [] : [{ isGood: value >= 0.5, gain: 1 / Math.log2(place + 2) }];
  });
  const fit = listed.reduce((sum, { isGood, gain }) => sum + (isGood ? gain : -gain), 0);
  return { fit, good: listed.filter((one) => one.isGood).length, bad: listed.filter((one) => !one.isGood).length };
}

const NOT_RUNNING = { isRunning: false, error: null, kept: null };

/** What the marks are, how well they are explained, and the button that ranks by them; above the hits. */
export function MarksBar({ state, type, node, hits }) {
  const [run, setRun] = useState(NOT_RUNNING);
  const latest = useRef(null);
  const pairs = pairsOf(state, type);
  const subject = JSON.stringify([state.graph, type, state.query, state.mix, state.k, pairs]);
  latest.current = subject;
  useEffect(() => setRun(NOT_RUNNING), [subject]);
  const { data: result } = useAnswer(
    state.mix && pairs.length >= ENOUGH && pairs.length <= MAX_PAIRS ? ["marks", state.graph, type, pairs] : null,
    () => infer(state.graph, type, pairs),
  );
  if (!pairs.length && !state.mix) return null;
  const rankBy = (mix) => change({ mix, model: null, target: null, group: null, by: null });
  const rerank = async () => {
    setRun({ ...NOT_RUNNING, isRunning: true });
    try {
      const answer = await infer(state.graph, type, pairs);
      const mix = mixOf(answer);
      const marks = marksOf(state, type);
      const next = hits && marks.size ? (await search(state.graph, { mix }, { ...state, type })).hits : null;
      if (latest.current !== subject) return;
      const [old, found] = next ? [fitOf(hits, marks, state.k), fitOf(next, marks, state.k)] : [null, null];
      if (found && old.fit > found.fit + 1e-9) setRun({ ...NOT_RUNNING, kept: { mix, old, found, answer } });
      else rankBy(mix);
    } catch (error) {
      if (latest.current === subject) setRun({ ...NOT_RUNNING, error });
    }
  };
  const { kept } = run;
  const good = pairs.filter(([, , value]) => value >= 0.5).length;
  const missing = ENOUGH - pairs.length;
  return (
    <div class="marks" role="region" aria-label="Your examples">
      <p>
        <span class="yes">{count(good)} similar</span>, <span class="no">{count(pairs.length - good)} not</span>
        {missing > 0 && <span class="quiet"> · mark {count(missing)} more to rank by your examples</span>}
        {state.mix && <span class="quiet"> · ranked by your examples</span>}
      </p>
      {result && JSON.stringify(mixOf(result)) === JSON.stringify(state.mix) && (
        <p class="quiet" id="marks-verdict">
          {verdictWords(result, pairs)}
        </p>
      )}
      {kept && (
        <p id="marks-kept" role="status">
          This list stays, since it fits your marks better: {keptWords(kept.old, state.k)} in it, and{" "}
          {keptWords(kept.found, state.k)} if your examples ranked it. {verdictWords(kept.answer, pairs)}{" "}
          <button type="button" id="rank-anyway" onClick={() => rankBy(kept.mix)}>
            Rank by them anyway
          </button>
        </p>
      )}
      <div class="row wrap">
        {missing <= 0 && (
          <button type="button" class="main" id="rerank" disabled={run.isRunning} onClick={rerank}>
            {run.isRunning ? "Ranking …" : state.mix ? "Re-rank again" : "Re-rank by your examples"}
          </button>
        )}
        {state.mix && (
          <button
            type="button"
            id="undo-rank"
            onClick={() =>
              change({ mix: null, target: null, ...(state.path ? {} : atNode({ ...node, node_type: type })) })
            }
          >
            Undo
          </button>
        )}
        <a class="button" href={linkTo({ view: "examples" })}>
          Details
        </a>
      </div>
      {run.error && (
        <Problem error={run.error}>
          {run.error.status === 504 && <a href={linkTo({ view: "examples" })}>Infer as a job</a>}
        </Problem>
      )}
    </div>
  );
}

const keptWords = ({ good, bad }, k) => `${count(good)} similar and ${count(bad)} not similar among the best ${k}`;

// ---- The page of examples -------------------------------------------------------------------------
export function ExamplesPage({ state, schema, types }) {
  const linked = types.filter((type) => schema.relations.some((one) => one.source === type || one.target === type));
  const type = state.type ?? state.queryType ?? linked[0] ?? null;
  const pairs = pairsOf(state, type);
  if (!type) return <p class="empty">This graph has no relations to learn from.</p>;
  return (
    <div class="examples">
      <section aria-labelledby="examples-title">
        <h1 id="examples-title" tabindex={-1}>
          By example
        </h1>
        <p class="quiet">Say how similar some pairs are, from 0 to 1. What explains your scores becomes a search.</p>
        <PairList state={state} type={type} pairs={pairs} />
        <AddPair key={`${state.graph} ${type}`} state={state} type={type} types={types} linked={linked} />
        <PastePairs key={`paste ${state.graph} ${type}`} state={state} type={type} />
      </section>
      <section aria-labelledby="meaning-title">
        <h2 id="meaning-title">What they mean</h2>
        <Inferred state={state} type={type} pairs={pairs} />
      </section>
    </div>
  );
}

/** Look up the names of the nodes of pairs. */
function useNames(graph, type, pairs) {
  const ids = [...new Set(pairs.slice(0, MAX_ROWS).flatMap(([query, target]) => [String(query), String(target)]))];
  const { data } = useAnswer(
    ids.length ? ["names", graph, type, ids] : null,
    (signal) => post(graphPath(graph, "/nodes"), { node_type: type, ids }, signal),
    `${graph} ${type}`,
  );
  const names = new Map();
  data?.nodes.forEach((node) => node && names.set(String(node.id), node));
  return (id) => names.get(String(id)) ?? { node_type: type, id, name: null };
}

function PairList({ state, type, pairs }) {
  const nodeOf = useNames(state.graph, type, pairs);
  if (!pairs.length)
    return (
      <p class="empty" id="pairs">
        No pairs yet. Add some here, or mark hits of a search with ✓ and ✕.
      </p>
    );
  const others = pairs.length - MAX_ROWS;
  return (
    <div id="pairs">
      <ol class="pairs">
        {pairs.slice(0, MAX_ROWS).map(([query, target, value]) => (
          <Pair
            key={keyOf([query, target])}
            query={nodeOf(query)}
            target={nodeOf(target)}
            value={value}
            set={(next) => addPairs(state, type, [[query, target, next]])}
          />
        ))}
      </ol>
      {others > 0 && <p class="quiet">and {count(others, "other pair")}</p>}
      <button type="button" id="remove-all" onClick={() => change({ pairs: [] })}>
        Remove all
      </button>
    </div>
  );
}

function Pair({ query, target, value, set }) {
  const label = `${isolated(labelOf(query), 60)} and ${isolated(labelOf(target), 60)}`;
  return (
    <li class="pair">
      <span class="who">
        <a href={linkTo(atNode(query))}>
          <NodeName node={query} most={60} withId={false} />
        </a>{" "}
        <span class="link">and</span>{" "}
        <a href={linkTo(atNode(target))}>
          <NodeName node={target} most={60} withId={false} />
        </a>
      </span>
      <ScoreField value={value} label={label} set={set} />
      <button type="button" aria-label={`Remove ${label}`} title="Remove" onClick={() => set(null)}>
        ✕
      </button>
    </li>
  );
}

const clamp = (text) => Math.min(1, Math.max(0, Number(text) || 0));

function ScoreField({ value, label, set }) {
  const [draft, setDraft] = useState(null); // what is typed or dragged; drawing the page anew would take it away
  const field = {
    min: "0",
    max: "1",
    value: draft ?? value,
    onInput: (event) => setDraft(event.target.value),
    onChange: (event) => {
      setDraft(null);
      set(clamp(event.target.value));
    },
    onBlur: () => setDraft(null),
  };
  return (
    <span class="scoring">
      <input type="range" step="0.01" aria-label={`Score of ${label}`} {...field} />
      <input type="number" step="any" aria-label={`Score of ${label} as a number`} {...field} />
    </span>
  );
}

function AddPair({ state, type, types, linked }) {
  const [query, setQuery] = useState(null);
  const [target, setTarget] = useState(null);
  const isReady = query !== null && target !== null;
  const add = (value) => {
    addPairs(state, type, [[query.id, target.id, value]]);
    setTarget(null);
  };
  const box = (id, label, node, set) => (
    <NodeBox
      look="field"
      id={id}
      graph={state.graph}
      types={types}
      only={type}
      label={label}
      placeholder={`Name or id of ${article(type)} ${shown(type, 30)}`}
      value={node ? labelOf(node) : ""}
      onNode={set}
    />
  );
  return (
    <div class="add-pair">
      <h2>Add a pair</h2>
      {linked.length > 1 && (
        <label class="small">
          Type{" "}
          <select id="pair-type" value={type} onChange={(event) => change({ type: event.target.value, pairs: [] })}>
            {linked.map((one) => (
              <option key={one} value={one}>
                {shown(one, 40)}
              </option>
            ))}
          </select>
        </label>
      )}
      <div class="two">
        {box("pair-query", "First", query, setQuery)}
        {box("pair-target", "Second", target, setTarget)}
      </div>
      <div class="row wrap">
        <button type="button" id="add-similar" disabled={!isReady} onClick={() => add(1)}>
          ✓ similar
        </button>
        <button type="button" id="add-different" disabled={!isReady} onClick={() => add(0)}>
          ✕ not similar
        </button>
      </div>
    </div>
  );
}

// ---- Pasting --------------------------------------------------------------------------------------
/** Split a line of CSV or TSV into fields; quotes hold commas. */
function fieldsOf(line) {
  if (line.includes("\t")) return line.split("\t").map((field) => field.trim());
  const fields = [...line.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/g)].map((match) =>
    match[1] !== undefined ? match[1].replaceAll('""', '"') : match[2].trim(),
  );
  return line.endsWith(",") ? fields : fields.slice(0, -1);
}

/** Read lines of query, target and score; names may hold commas, so each line has one or several readings. */
function readLines(text) {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line && !/^query\s*[,\t]\s*target/i.test(line));
  return lines.map((line) => {
    const fields = fieldsOf(line);
    const last = Number(fields.at(-1));
    const isScored = fields.length > 2 && fields.at(-1) !== "" && Number.isFinite(last);
    const names = isScored ? fields.slice(0, -1) : fields;
    const readings = names
      .slice(1)
      .map((_, place) => [names.slice(0, place + 1).join(", "), names.slice(place + 1).join(", ")]);
    return { line, value: isScored ? last : 1, readings: readings.filter(([a, b]) => a && b) };
  });
}

/** Find the nodes of pasted lines; each becomes a pair, or says what was not found. */
async function preview(graph, type, text, signal) {
  const lines = readLines(text);
  const ids = [...new Set(lines.flatMap(({ readings }) => readings.flat()))];
  const [nodes, ambiguous] = [new Map(), new Map()];
  for (let start = 0; start < ids.length; start += 1000) {
    const part = ids.slice(start, start + 1000);
    const answer = await post(graphPath(graph, "/nodes"), { node_type: type, ids: part }, signal);
    part.forEach((id, place) => nodes.set(id, answer.nodes[place]));
    for (const [name, same] of Object.entries(answer.ambiguous)) ambiguous.set(name, same);
  }
  return lines.map(({ line, value, readings }) => {
    const [found] = readings.filter(([a, b]) => nodes.get(a) && nodes.get(b));
    if (found) return { line, pair: [nodes.get(found[0]), nodes.get(found[1]), value] };
    const unknown = [...new Set((readings[0] ?? []).filter((name) => !nodes.get(name)))];
    const missing = unknown.filter((name) => !ambiguous.has(name));
    const several = unknown.filter((name) => ambiguous.has(name)).map((name) => [name, ambiguous.get(name)]);
    return { line, pair: null, missing, several, isPair: readings.length > 0 };
  });
}

function PastePairs({ state, type }) {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState(null);
  const { data, error } = useAnswer(asked ? ["preview", state.graph, type, asked] : null, (signal) =>
    preview(state.graph, type, asked, signal),
  );
  const good = data?.filter((row) => row.pair) ?? [];
  const bad = data?.filter((row) => !row.pair) ?? [];
  const upload = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const content = await file.text();
    setText(content);
    setAsked(content);
  };
  const add = () => {
    addPairs(
      state,
      type,
      good.map(({ pair: [query, target, value] }) => [query.id, target.id, value]),
    );
    setText("");
    setAsked(null);
  };
  return (
    <details class="paste">
      <summary>Paste or upload many</summary>
      <label for="paste" class="quiet">
        One pair per line: query, target and score, as CSV or with tabs. Without a score, the pair is similar.
      </label>
      <textarea
        id="paste"
        rows={5}
        spellcheck={false}
        placeholder="query,target,score"
        value={text}
        onInput={(event) => setText(event.target.value)}
      />
      <div class="row wrap">
        <button type="button" id="paste-check" disabled={!text.trim()} onClick={() => setAsked(text)}>
          Look them up
        </button>
        <label class="button file">
          Upload a file
          <input type="file" accept=".csv,.tsv,.txt" onChange={upload} />
        </label>
      </div>
      {error && <Problem error={error} />}
      {data && (
        <div class="preview" role="status">
          <p>
            {count(good.length, "pair")} found{bad.length ? `, ${count(bad.length)} not` : ""}.
          </p>
          {bad.length > 0 && (
            <ul class="quiet">
              {bad.slice(0, 8).map((row, place) => (
                <li key={place}>
                  {!row.isPair && `“${shown(row.line, 60)}” is no pair.`}
                  {row.missing?.length > 0 &&
                    `No ${type} is called ${row.missing.map((name) => `“${shown(name, 40)}”`).join(" or ")}. `}
                  {row.several?.map(([name, same]) => homonymWords(name, same, type)).join(" ")}
                </li>
              ))}
              {bad.length > 8 && <li>and {count(bad.length - 8)} more</li>}
            </ul>
          )}
          <button type="button" class="main" id="paste-add" disabled={!good.length} onClick={add}>
            Add {count(good.length, "pair")}
          </button>
          {good.length > MAX_PAIRS && (
            <TrainModel
              state={state}
              type={type}
              pairs={good.map(({ pair: [query, target, value] }) => [query.id, target.id, value])}
            />
          )}
        </div>
      )}
    </details>
  );
}

// ---- What pairs mean ------------------------------------------------------------------------------
function Inferred({ state, type, pairs }) {
  const [skipped, setSkipped] = useState([]);
  const [fromJob, setFromJob] = useState({ key: null, result: null });
  const isMany = pairs.length > MAX_PAIRS;
  const key = JSON.stringify([state.graph, type, pairs]);
  const { data, error, isLoading, isStale } = useAnswer(
    pairs.length && !isMany ? ["infer", state.graph, type, pairs, skipped] : null,
    () => infer(state.graph, type, pairs, skipped),
    `${state.graph} ${type}`,
  );
  const result = fromJob.key === key ? fromJob.result : data;
  const job = { kind: "infer", graph: state.graph, ...inferBody(type, pairs) };
  if (!pairs.length) return <p class="empty">The meta-paths that explain your pairs appear here.</p>;
  return (
    <div id="inferred" aria-busy={isLoading} class={isStale ? "stale" : ""}>
      {isLoading && <Waiting text="Looking for meta-paths that explain the pairs" />}
      {error && error.status !== 504 && fromJob.key !== key && <Problem error={error} />}
      {result && (
        <Result
          result={result}
          state={state}
          type={type}
          pairs={pairs}
          skip={(pair) => setSkipped([...skipped, pair])}
        />
      )}
      <JobRun
        key={key}
        request={job}
        label={isMany || error?.status === 504 ? "Infer as a job" : "Search thoroughly, as a job"}
        isMain={isMany}
        onResult={(found) => setFromJob({ key, result: found })}
      />
      <TrainModel key={`train ${key}`} state={state} type={type} pairs={pairs} />
    </div>
  );
}

// ---- Training -------------------------------------------------------------------------------------
const BUDGETS = { "": "as long as needed, up to 10 minutes", 60: "1 minute", 300: "5 minutes", 3600: "1 hour" };

/** Train a model on pairs, as a job of the service, and search by it. */
function TrainModel({ state, type, pairs }) {
  const [budget, setBudget] = useState("");
  const { pairs: labels, node_type } = inferBody(type, pairs);
  const request = { kind: "train", graph: state.graph, pairs: labels, node_type, budget: Number(budget) || null };
  return (
    <div class="train">
      <h3>Train a model</h3>
      <p class="quiet">
        Several kinds are trained and judged by pairs that are held out, and the best of them, or a mix, is kept. It takes some 50 pairs or
        more, and goes on as a job when you leave this page.
      </p>
      <label class="small">
        Take{" "}
        <select value={budget} onChange={(event) => setBudget(event.target.value)}>
          {Object.entries(BUDGETS).map(([seconds, words]) => (
            <option key={seconds} value={seconds}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <JobRun key={budget} request={request} label={`Train on ${count(pairs.length, "pair")}`} onResult={refreshServed}>
        {(report, job) => <Trained report={report} job={job} state={state} type={type} pairs={pairs} />}
      </JobRun>
    </div>
  );
}

/** What was trained, how well each kind did, and the search by it. */
function Trained({ report, job, state, type, pairs }) {
  const query = state.query !== null && state.queryType === type ? state.query : pairs[0][0];
  return (
    <div class="trained">
      <p>
        Kept: <b>{report.chosen.join(" and ")}</b>. {capital(shown(report.reason, 600))}.
      </p>
      <p>
        <a
          class="button main"
          id="search-model"
          href={linkTo({ ...atNode({ id: query, node_type: type }), model: job.id })}
        >
          Search by this model
        </a>
      </p>
      <details>
        <summary>What was tried</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">{capital(report.metric)}, held out</th>
              <th scope="col">nDCG@20</th>
              <th scope="col">Weight</th>
            </tr>
          </thead>
          <tbody>
            {[...report.tried, ...(report.mix ? [report.mix] : [])].map((one) => (
              <tr key={one.learner} class={one === report.mix ? "mix" : ""}>
                <td>{one === report.mix ? "the mix" : one.learner}</td>
                <td>{score(one.score)}</td>
                <td>{score(one.ndcg)}</td>
                <td>
                  {one.weight.toFixed(2)} {one.note && <span class="quiet">{shown(one.note, 200)}</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {report.unlabelled && <p class="quiet">{capital(shown(report.unlabelled, 400))}.</p>}
      </details>
    </div>
  );
}

function Result({ result, state, type, pairs, skip }) {
  const most = Math.max(1e-9, ...result.metapaths.map((part) => part.weight));
  const query = state.query ?? pairs[0][0];
  const open = linkTo({ ...atNode({ id: query, node_type: type }), path: state.path, mix: mixOf(result) });
  return (
    <>
      <p class="verdict">{verdictWords(result, pairs)}</p>
      <ul class="weights" aria-label="Inferred meta-paths">
        {result.metapaths.map((part) => (
          <li key={part.metapath}>
            <span class="name">{shown(part.metapath, 120)}</span>
            <Bar share={part.weight / most} />
            <span class="score">{score(part.weight)}</span>
          </li>
        ))}
      </ul>
      <p>
        <a class="button main" id="open-search" href={open}>
          Search by these examples
        </a>
      </p>
      <Suggestion result={result} state={state} type={type} pairs={pairs} skip={skip} />
      <details class="statistics">
        <summary>Details</summary>
        <Statistics result={result} />
      </details>
    </>
  );
}

/** Say without statistics how well a result explains the pairs. */
function verdictWords(result, pairs) {
  const fit = result.auc ?? result.r2 ?? 0;
  const isTested = (result.held_out_auc ?? result.held_out_r2 ?? null) !== null;
  const words =
    isTested && !result.explains && fit > 0.7
      ? "fits your examples, but does not foretell those that are held out: mark more before you rely on it"
      : fit > 0.95
        ? "explains your examples"
        : fit > 0.7
          ? "explains your examples in part"
          : "hardly explains your examples";
  const few = pairs.length < 6 ? " With so few, others may do so too: mark more to be sure." : "";
  return `${result.metapaths.length === 1 ? "One meta-path" : "A mixture of meta-paths"} ${words}.${few}`;
}

/** A pair to label next, near the queries of the user: one of its nodes is among the pairs already. */
function Suggestion({ result, state, type, pairs, skip }) {
  const known = new Set(pairs.flatMap(([query, target]) => [String(query), String(target)]));
  const next = result.suggestions.find((one) => known.has(String(one.query)) || known.has(String(one.target)));
  if (!next) return null;
  const [query, target] = [
    { id: next.query, name: next.query_name },
    { id: next.target, name: next.target_name },
  ];
  const label = (value) => () => addPairs(state, type, [[next.query, next.target, value]]);
  return (
    <div class="suggested">
      <h3>Would help most</h3>
      <p>
        Are{" "}
        <b>
          <bdi>{shown(labelOf(query), 60)}</bdi>
        </b>{" "}
        and{" "}
        <b>
          <bdi>{shown(labelOf(target), 60)}</bdi>
        </b>{" "}
        similar?
      </p>
      <div class="row wrap">
        <button type="button" onClick={label(1)}>
          ✓ similar
        </button>
        <button type="button" onClick={label(0)}>
          ✕ not similar
        </button>
        <button type="button" id="skip-next" onClick={() => skip([next.query, next.target])}>
          Another
        </button>
      </div>
    </div>
  );
}

function Statistics({ result }) {
  const { tried, candidates, stopped } = result.searched;
  const rows = [
    ["Measure", result.measure],
    ["RMSE", result.rmse],
    ["R²", result.r2],
    ["AUC", result.auc],
    ["Held-out RMSE", result.held_out_rmse],
    ["Held-out R²", result.held_out_r2],
    ["Held-out AUC", result.held_out_auc],
  ].filter(([, value]) => value !== null && value !== undefined);
  return (
    <>
      <p class="quiet">{capital(shown(result.verdict, 400))}.</p>
      <dl class="fit">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === "number" ? score(value) : value}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">
        {count(tried)} of {count(candidates, "meta-path")} tried
        {stopped ? `; stopped because ${shown(stopped, 120)}` : ""}.
      </p>
      {result.metapaths.some((part) => part.low !== null && part.low !== undefined) && (
        <ul class="quiet">
          {result.metapaths.map((part) => (
            <li key={part.metapath}>
              {shown(part.metapath, 80)}: weight between {score(part.low)} and {score(part.high)}
            </li>
          ))}
        </ul>
      )}
      {result.alternatives.length > 0 && (
        <>
          <h3>Explain the pairs equally well</h3>
          <ol class="alternatives">
            {result.alternatives.map((other, place) => (
              <li key={place}>
                {other.measure}:{" "}
                {other.metapaths.map((part) => `${score(part.weight)} × ${shown(part.metapath, 80)}`).join(" + ")}
              </li>
            ))}
          </ol>
        </>
      )}
    </>
  );
}
