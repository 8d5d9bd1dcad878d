// What travels: the search as curl, Python and a command, and the hits as CSV and JSON, with where they are from.

import { useEffect, useRef, useState } from "preact/hooks";
import { parametersOf } from "./graphs.js";
import { JobRun } from "./jobs.jsx";
import { graphPath, post, urlOf } from "./requests.js";
import { linkTo } from "./store.js";
import { announce, count, download, shown } from "./words.jsx";

const MOST_QUERIES = 1000;
const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;
const python = (value) => (value === null ? "None" : JSON.stringify(value));

/** Write a search as a line of curl, Python, or the command line. */
function asCode({ graph, query, k, where, meaning, type }) {
  const parameters = parametersOf(meaning, type);
  const base = location.origin;
  if (meaning.mix) {
    const body = { queries: [query], combination: meaning.mix, k, ...(where.length ? { where } : {}) };
    return {
      curl: `curl ${quote(`${base}/api${graphPath(graph, "/search")}`)} -H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))}`,
      Python: `from neupath.client import Client\n\nClient(${python(base)}).search(${python(graph)}, [${python(query)}], combination=${python(meaning.mix)}, k=${k})`,
    };
  }
  const named = Object.entries({ ...parameters, k, ...(where.length ? { where } : {}) }).filter(
    ([, value]) => value !== undefined,
  );
  const options = {
    metapath: "-p",
    measure: "--measure",
    model: "--model",
    node_type: "--node-type",
    k: "-k",
    where: "--where",
  };
  const words = named.flatMap(([name, value]) => [value].flat().map((one) => `${options[name]} ${quote(one)}`));
  return {
    curl: `curl ${quote(base + urlOf(graphPath(graph, "/search"), { query, ...parameters, k, where }))}`,
    Python: `from neupath.client import Client\n\nClient(${python(base)}).search(${[python(graph), python(query), ...named.map(([name, value]) => `${name}=${python(value)}`)].join(", ")})`,
    "command line": `neupath search ${quote(graph)} ${quote(query)} ${words.join(" ")}`,
  };
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
  return [["rank", "id", "name", "score", ...columns], ...rows].map((row) => row.map(field).join(",")).join("\r\n");
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
      const { nodes } = await post(graphPath(state.graph, "/nodes"), { node_type: type, ids: names });
      const queries = nodes.filter(Boolean).map((node) => node.id);
      const missing = names.filter((_, place) => !nodes[place]);
      const body = { ...parametersOf(meaning, type), queries, k: state.k, where: state.where };
      const answers = queries.length ? await post(graphPath(state.graph, "/search"), body) : [];
      const hits = answers.flatMap((answer) => answer.hits.map((hit) => ({ ...hit, query: answer.query })));
      if (hits.length) download(`hits-${state.graph}-many.csv`, new Blob([toCsv(hits, origin)], { type: "text/csv" }));
      const unknown = missing.length ? ` Not found: ${shown(missing.join(", "), 200)}.` : "";
      setNote(`Searched from ${count(queries.length, "node")}.${unknown}`);
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
    query: state.query,
    graph: state.graph,
    version: version ?? "",
    metapath:
      meaning.metapath ??
      (meaning.mix ? meaning.mix.map((part) => `${part.weight} × ${part.metapath}`).join(" + ") : ""),
    measure: meaning.measure ?? meaning.model ?? "combination",
    where: state.where.join(" and "),
    time: new Date().toISOString(),
  };
  const code = asCode({ ...state, meaning, type });
  const name = `hits-${state.graph}-${state.query}`;
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
          </div>
          {meaning.metapath && (
            <>
              <p class="label">From every node</p>
              <JobRun request={{ kind: "join", graph: state.graph, ...meaning, k: state.k }} label="Parquet, as a job">
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
