// What travels: the search as curl, Python and a command, and the hits as CSV, JSON and Parquet, with where they are from.

import { useEffect, useRef, useState } from "preact/hooks";
import { parametersOf, queriesOf, searchBody } from "./graphs.js";
import { JobRun } from "./jobs.jsx";
import { graphPath, post, postForFile, urlOf } from "./requests.js";
import { linkTo } from "./store.js";
import { announce, count, download, homonymWords, Problem, shown } from "./words.jsx";

const MOST_QUERIES = 1000;
const PARQUET = "application/vnd.apache.parquet";
const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;
const python = (value) => (value === null ? "None" : value === true ? "True" : JSON.stringify(value));

/** Write a search as a line of curl, Python, or the command line. */
function asCode({ meaning, type, ...asked }) {
  const { graph, query, k, where, unless } = asked;
  const [parameters, base, queries] = [parametersOf(meaning, type), location.origin, queriesOf(asked)];
  const isSet = queries.length > 1;
  const body = searchBody(meaning, type, asked);
  const call = `curl ${quote(`${base}/api${graphPath(graph, "/search")}`)} -H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))}`;
  const named = Object.entries({ ...body, queries: undefined }).filter(([, value]) => value !== undefined);
  const line = asCommand({ meaning, type, ...asked });
  return {
    curl:
      meaning.mix || isSet
        ? call
        : `curl ${quote(base + urlOf(graphPath(graph, "/search"), { query, ...parameters, k, where, unless }))}`,
    Python: `from neupath.client import Client\n\nClient(${python(base)}).search(${[
      python(graph),
      python(isSet ? queries : query),
      ...named.map(([name, value]) => `${name}=${python(value)}`),
    ].join(", ")})`,
    ...(line ? { "command line": line } : {}),
  };
}

/** Write a search as a command; null if its parts have different measures, which no command says. */
function asCommand({ meaning, type, graph, k, where, unless, ...asked }) {
  const [first, ...all] = queriesOf(asked);
  const others = all.filter((id) => !asked.less.includes(id));
  const option = (name, values) =>
    [values ?? []].flat().map((value) => `${name}${name.startsWith("--") ? "=" : " "}${quote(value)}`);
  const parts = meaning.mix ?? [];
  if (new Set(parts.map((part) => part.measure)).size > 1) return null;
  const { metapath, measure, model, node_type: nodeType } = parametersOf(meaning, type);
  // behind --, an id that starts with a dash is no option; the form --name=value takes such a value, too
  return [
    "neupath search",
    ...option("-p", meaning.mix ? parts.map((part) => part.metapath) : metapath),
    ...option("--weights", parts.length ? parts.map((part) => part.weight).join(",") : null),
    ...option("--measure", parts[0]?.measure ?? measure),
    ...option("--model", model),
    ...option("--node-type", nodeType),
    ...option("--with", others),
    ...option("--without", asked.less),
    ...option("-k", k),
    ...option("--where", where),
    ...option("--unless", unless),
    `-- ${quote(graph)} ${quote(first)}`,
  ].join(" ");
}

const field = (value) =>
  /[",\n\r]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");

/** Write hits as CSV; every row says of which graph, meta-path and measure it is. */
function toCsv(hits, origin) {
  const columns = Object.keys(origin);
  const rows = hits.map((hit) => [
    hit.rank,
    hit.id,
    hit.name,
    hit.score,
    ...columns.map((name) => hit[name] ?? origin[name]),
  ]);
  return writeCsv([["rank", "id", "name", "score", ...columns], ...rows]);
}

const writeCsv = (rows) => rows.map((row) => row.map(field).join(",")).join("\r\n");

/** What the learners of a stack add to its score, and what boosted trees add to their margin. */
function addedTo(why) {
  const learners = why.learners ?? [{ name: why.measure, explanation: why }];
  return [
    ...(why.learners ?? []).map((one) => ({ measure: why.measure, learner: one.name, score: one.score, adds: one.share })),
    ...learners.flatMap((one) =>
      (one.explanation?.contributions ?? []).map(({ name, value }) => ({ learner: one.name, name, adds: value })),
    ),
  ];
}

/** Save all reasons of a hit, as what the service said or as a table with a row for each. */
export function saveReasons(why, parts, format, name) {
  if (format === "JSON")
    return download(`${name}.json`, new Blob([JSON.stringify(why, null, 1)], { type: "application/json" }));
  const added = addedTo(why);
  const columns = ["metapath", "measure", "node_type", "id", "name", "share", "score", "paths"];
  const all = added.length ? [...columns, "learner", "adds"] : columns;
  const rows = parts.flatMap((part) =>
    part.groups.map((group) => columns.map((column) => group[column] ?? part[column] ?? why[column])),
  );
  rows.push(...added.map((one) => all.map((column) => one[column])));
  return download(`${name}.csv`, new Blob([writeCsv([all, ...rows])], { type: "text/csv" }));
}

/** Copy a text; return whether the browser allows it, which it does on this computer and over HTTPS only. */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`copied ${what}`);
    return true;
  } catch {
    return false;
  }
}

/** The same search for many nodes: pasted or uploaded, one name or id per line, saved as CSV. */
function BatchSearch({ state, meaning, type, origin }) {
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  const run = async () => {
    const names = [...new Set(text.split(/\r?\n/).map((line) => line.trim()))].filter(Boolean).slice(0, MOST_QUERIES);
    setNote("Searching …");
    try {
      const { nodes, ambiguous } = await post(graphPath(state.graph, "/nodes"), { node_type: type, ids: names });
      const queries = [...new Set(nodes.filter(Boolean).map((node) => node.id))];
      const missing = names.filter((name, place) => !nodes[place] && !ambiguous[name]);
      const several = Object.entries(ambiguous).map(([name, same]) => ` ${homonymWords(name, same, type)}`);
      const { k, where, unless } = state;
      const body = { ...parametersOf(meaning, type), queries, k, where, unless };
      const answers = queries.length ? await post(graphPath(state.graph, "/search"), body) : [];
      const hits = answers.flatMap((answer) => answer.hits.map((hit) => ({ ...hit, query: answer.query })));
      if (hits.length) download(`hits-${state.graph}-many.csv`, new Blob([toCsv(hits, origin)], { type: "text/csv" }));
      const unknown = missing.length ? ` Not found: ${shown(missing.join(", "), 200)}.` : "";
      setNote(`Searched from ${count(queries.length, "node")}.${unknown}${several.join("")}`);
    } catch (error) {
      setNote(error.message);
    }
  };
  return (
    <details>
      <summary>From many nodes</summary>
      <label for="batch" class="quiet">
        One name or id per line, up to {count(MOST_QUERIES)}
      </label>
      <textarea id="batch" rows={4} spellcheck={false} value={text} onInput={(event) => setText(event.target.value)} />
      <div class="row wrap">
        <button type="button" id="batch-csv" disabled={!text.trim()} onClick={run}>
          CSV
        </button>
        <label class="button file">
          Upload a list
          <input
            type="file"
            accept=".txt,.csv"
            onChange={async (event) => setText((await event.target.files[0]?.text()) ?? "")}
          />
        </label>
      </div>
      <p class="quiet" role="status">
        {note}
      </p>
    </details>
  );
}

export function ShareMenu({ state, meaning, hits, type, version }) {
  const [isOpen, setOpen] = useState(false);
  const [copied, setCopied] = useState(null);
  const [problem, setProblem] = useState(null);
  const menu = useRef(null);
  useEffect(() => {
    const close = (event) => {
      if (event.type === "keydown" ? event.key === "Escape" : !menu.current?.contains(event.target)) setOpen(false);
    };
    if (isOpen) for (const name of ["pointerdown", "keydown"]) addEventListener(name, close);
    return () => ["pointerdown", "keydown"].forEach((name) => removeEventListener(name, close));
  }, [isOpen]);
  if (!meaning) return null;
  const listed = hits.slice(0, state.k);
  const origin = {
    query: queriesOf(state).join(" + "),
    graph: state.graph,
    version: version ?? "",
    metapath:
      meaning.metapath ??
      (meaning.mix ? meaning.mix.map((part) => `${part.weight} × ${part.metapath}`).join(" + ") : ""),
    measure: meaning.measure ?? meaning.model ?? "combination",
    where: state.where.join(" and "),
    unless: state.unless.join(" or "),
    time: new Date().toISOString(),
  };
  const { graph, k, where, unless } = state;
  const join = { kind: "join", graph, ...meaning, k, where, unless };
  const code = asCode({ ...state, meaning, type });
  const name = `hits-${state.graph}-${queriesOf(state).slice(0, 3).join("-")}`;
  const saveParquet = async () => {
    try {
      const body = searchBody(meaning, type, state);
      download(`${name}.parquet`, await postForFile(graphPath(state.graph, "/search"), body, PARQUET));
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  };
  const act = (what, text) => async () => setCopied({ what, text, isCopied: await copy(text, what) });
  return (
    <div class="menu" ref={menu}>
      <button
        type="button"
        id="share"
        aria-expanded={isOpen}
        aria-controls="share-panel"
        onClick={() => {
          setOpen(!isOpen);
          setCopied(null);
        }}
      >
        Export
      </button>
      {isOpen && (
        <div class="panel" id="share-panel">
          <p class="label">Download {listed.length} hits</p>
          <div class="row wrap">
            <button
              type="button"
              id="csv"
              onClick={() => download(`${name}.csv`, new Blob([toCsv(listed, origin)], { type: "text/csv" }))}
            >
              CSV
            </button>
            <button
              type="button"
              id="json"
              onClick={() =>
                download(
                  `${name}.json`,
                  new Blob([JSON.stringify({ ...origin, hits: listed }, null, 1)], { type: "application/json" }),
                )
              }
            >
              JSON
            </button>
            <button type="button" id="parquet" onClick={saveParquet}>
              Parquet
            </button>
          </div>
          {problem && <Problem error={problem} />}
          {meaning.metapath && (
            <>
              <p class="label">From every node</p>
              <JobRun request={join} label="Parquet, as a job">
                {() => (
                  <p>
                    <a href={linkTo({ view: "jobs" })}>Download it from the jobs</a>
                  </p>
                )}
              </JobRun>
            </>
          )}
          <BatchSearch state={state} meaning={meaning} type={type} origin={origin} />
          <p class="label">Copy</p>
          <div class="row wrap">
            <button type="button" id="copy-link" onClick={act("the link", location.href)}>
              Link
            </button>
            {Object.entries(code).map(([what, text]) => (
              <button type="button" key={what} class="copy-code" data-what={what} onClick={act(what, text)}>
                {what}
              </button>
            ))}
          </div>
          <p class="quiet" role="status">
            {copied?.isCopied
              ? `Copied ${copied.what}.`
              : copied
                ? "Copy this:"
                : "The link holds this view, with your marks."}
          </p>
          {copied && !copied.isCopied && <textarea rows={4} readonly aria-label={copied.what} value={copied.text} />}
        </div>
      )}
    </div>
  );
}
