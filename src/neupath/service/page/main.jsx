// Entry point: the frame of the page, and which view the state asks for.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { NodeBox } from "./box.jsx";
import { ExamplesPage, pairsOf } from "./examples.jsx";
import { readServed, servedKey } from "./graphs.js";
import { JobsPage } from "./jobs.jsx";
import { Landing } from "./landing.jsx";
import { MeaningBuilder } from "./meaning.jsx";
import { NodePage } from "./node.jsx";
import { ReferencePage } from "./reference.jsx";
import { RelatePage } from "./relate.jsx";
import { getCached, graphPath, setTokenPrompt, useAnswer } from "./requests.js";
import { SearchPage } from "./search.jsx";
import { addressOf, atNode, browserStorage, change, INITIAL, linkTo, useStore } from "./store.js";
import { announce, count, Panel, Problem, shown, Waiting } from "./words.jsx";

const THEME_KEY = "neupath.theme";
const NARROW = matchMedia("(max-width: 760px)");

/** Draw again when a media query starts or stops to match. */
function useMedia(media) {
  const [matches, setMatches] = useState(media.matches);
  useEffect(() => {
    const update = () => setMatches(media.matches);
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, []);
  return matches;
}

/** Which page the state asks for. */
function pageOf(state) {
  if (location.pathname === "/docs") return "reference";
  if (state.view !== "explore") return state.view;
  if (state.query === null) return state.build ? "build" : "landing";
  const isSearch =
    state.path.includes("-") ||
    state.mix ||
    state.model ||
    (state.path.trim() && !state.build) ||
    state.measure !== "pathsim";
  return isSearch ? "search" : state.build ? "build" : "node";
}

function App() {
  const values = useStore();
  const page = pageOf(values);
  const isNarrow = useMedia(NARROW);
  const { data: served, error, retry } = useAnswer(servedKey(), readServed, "served");
  const graph = values.graph ?? served?.graphs[0]?.name ?? null;
  const state = { ...values, graph };
  const isKnown = !served || served.graphs.some((one) => one.name === graph);
  const schema = useAnswer(graph && isKnown ? ["schema", graph] : null, () => getCached(graphPath(graph, "/schema")));
  const types = schema.data?.node_types.map((type) => type.node_type) ?? [];
  useTitle(state, page);
  useFocus(page, state);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector("#query, main h1")?.focus();
        }}
      >
        Skip to search
      </a>
      <Header state={state} page={page} served={served} types={types} />
      <main id="main">
        {error && <Problem error={error} retry={retry} />}
        {served && graph === null && <p class="empty">This service serves no graph.</p>}
        {!isKnown && page !== "reference" && page !== "jobs" ? (
          <UnknownGraph name={graph} graphs={served.graphs} />
        ) : (
          <Panel what="This page" about={location.hash}>
            <Page page={page} state={state} served={served} schema={schema} types={types} isNarrow={isNarrow} />
          </Panel>
        )}
      </main>
      <footer>
        <p class="quiet">
          <a href="/docs">The API</a> does everything this page does. The link of the page holds the view.
        </p>
      </footer>
      <TokenDialog />
    </>
  );
}

function Page({ page, state, served, schema, types, isNarrow }) {
  if (page === "reference") return <ReferencePage />;
  if (page === "jobs") return <JobsPage />;
  if (page === "search")
    return (
      <SearchPage
        key={state.graph}
        state={state}
        served={served}
        schema={schema.data}
        types={types}
        isNarrow={isNarrow}
      />
    );
  if (page === "node" && state.queryType)
    return <NodePage key={`${state.graph} ${state.queryType} ${state.query}`} state={state} types={types} />;
  if (schema.error) return <Problem error={schema.error} retry={schema.retry} />;
  if (!served || !schema.data) return <Waiting text="Loading the graph" />;
  if (page === "relate") return <RelatePage key={state.graph} state={state} types={types} />;
  if (page === "examples") return <ExamplesPage key={state.graph} state={state} schema={schema.data} types={types} />;
  if (page === "build")
    return (
      <BuildPage
        key={state.graph}
        state={state}
        served={served}
        schema={schema.data}
        types={types}
        isNarrow={isNarrow}
      />
    );
  return (
    <Landing
      key={state.graph}
      state={state}
      graphs={served.graphs}
      models={served.models}
      schema={schema.data}
      types={types}
      isNarrow={isNarrow}
    />
  );
}

/** Build a meta-path first, or from a node that is chosen. */
function BuildPage({ state, served, schema, types, isNarrow }) {
  return (
    <section class="build-page" aria-labelledby="build-title">
      <h1 id="build-title" tabindex={-1}>
        What does similar mean?
      </h1>
      <p class="quiet">
        Choose types one after another: a path from the node and back.{" "}
        {state.query === null && "Then choose a node to start from."}
      </p>
      <MeaningBuilder state={state} served={served} schema={schema} side="a" isNarrow={isNarrow} />
      {state.query === null && state.path.includes("-") && (
        <p>
          <a class="button main" href={linkTo({ build: false })}>
            Choose the node to start from
          </a>
        </p>
      )}
      {state.query !== null && (
        <p>
          <a class="button" href={linkTo(atNode({ id: state.query, node_type: state.queryType }))}>
            Back to the node
          </a>
        </p>
      )}
    </section>
  );
}

function UnknownGraph({ name, graphs }) {
  return (
    <div class="problem" role="alert">
      <p>No graph {shown(name, 80)} is served here.</p>
      <div class="chips">
        {graphs.map((one) => (
          <a class="chip" key={one.name} href={addressOf({ ...INITIAL, graph: one.name })}>
            {shown(one.name, 40)}
          </a>
        ))}
      </div>
    </div>
  );
}

function Header({ state, page, served, types }) {
  const pairs = pairsOf(state, state.type).length;
  const graphs = served?.graphs ?? (state.graph === null ? [] : [{ name: state.graph }]);
  const names =
    graphs.some((one) => one.name === state.graph) || state.graph === null
      ? graphs
      : [{ name: state.graph }, ...graphs];
  return (
    <header class="top">
      <a class="logo" href={addressOf({ ...INITIAL, graph: state.graph })} aria-label="neupath, start">
        <svg viewBox="0 0 32 20" aria-hidden="true">
          <path d="M5 15 16 5l11 10" />
          <circle cx="5" cy="15" r="4" />
          <circle cx="16" cy="5" r="4" />
          <circle cx="27" cy="15" r="4" />
        </svg>
        <span>neupath</span>
      </a>
      <label for="graph" class="unseen">
        Graph
      </label>
      <select
        id="graph"
        value={state.graph ?? ""}
        onChange={(event) => change({ ...INITIAL, graph: event.target.value })}
      >
        {names.map((one) => (
          <option key={one.name} value={one.name}>
            {shown(one.name, 40)}
          </option>
        ))}
      </select>
      {page !== "landing" && page !== "reference" && state.graph !== null && (
        <div class="grow">
          <NodeBox
            id="query"
            graph={state.graph}
            types={types}
            label="Look up a node"
            placeholder="Look up a node   /"
            onNode={(node) => change(atNode(node))}
            onPath={(path) =>
              change({
                ...(state.queryType === path.node_types[0]
                  ? { view: "explore", target: null }
                  : { ...INITIAL, graph: state.graph }),
                path: path.metapath,
                mix: null,
                model: null,
              })
            }
          />
        </div>
      )}
      <nav aria-label="Views">
        <a href={linkTo({ view: "examples" })} aria-current={page === "examples" ? "page" : undefined}>
          Examples
          {pairs > 0 && (
            <span class="pill" id="pair-count" title={count(pairs, "pair")}>
              {pairs}
            </span>
          )}
        </a>
        <a
          href={linkTo({ view: "relate", target: null, targetType: null })}
          aria-current={page === "relate" ? "page" : undefined}
        >
          Relate
        </a>
        <a href={linkTo({ view: "jobs" })} aria-current={page === "jobs" ? "page" : undefined}>
          Jobs
        </a>
      </nav>
      <Theme />
    </header>
  );
}

// ---- Theme, title, focus, token -------------------------------------------------------------------
const DARK = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (browserStorage.getItem(THEME_KEY) ?? (DARK.matches ? "dark" : "light")) === "dark";
const showTheme = () => (document.documentElement.dataset.theme = isDark() ? "dark" : "light");
showTheme();

/** Light or dark: the system setting, unless the user has chosen one. */
function Theme() {
  useMedia(DARK);
  const [, redraw] = useState(0);
  showTheme();
  const label = isDark() ? "Light colours" : "Dark colours";
  const toggle = () => {
    browserStorage.setItem(THEME_KEY, isDark() ? "light" : "dark");
    showTheme();
    redraw((tick) => tick + 1);
    announce(isDark() ? "dark colours" : "light colours");
  };
  return (
    <button type="button" id="theme" aria-label={label} title={label} onClick={toggle}>
      ◐
    </button>
  );
}

let isFocusLost = false; // with the element that had it, on the way to another page

/** Write the title of the tab in words, once the name of the node is known, and give the title a lost focus. */
function useTitle(state, page) {
  const fallback =
    { relate: "Related", examples: "By example", jobs: "Jobs", reference: "The HTTP API", build: "Build a meta-path" }[
      page
    ] ?? "neupath";
  useEffect(() => {
    const write = () => {
      const heading = document.querySelector("main h1");
      const title = heading?.getAttribute("title") ?? heading?.textContent;
      if (heading && isFocusLost && document.activeElement === document.body) heading.focus({ preventScroll: true });
      if (heading) isFocusLost = false;
      const words = page === "landing" ? "neupath" : (title ?? fallback);
      document.title = state.graph && page !== "reference" ? `${words} · ${shown(state.graph, 40)}` : words;
    };
    write();
    const observer = new MutationObserver(write);
    observer.observe(document.querySelector("main"), {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
      attributeFilter: ["title"],
    });
    return () => observer.disconnect();
  }, [page, state.graph]);
}

/** Scroll to the top of another page, and notice if the element that had the focus is gone; / goes to the box. */
function useFocus(page, state) {
  const last = useRef(null);
  const key = `${page} ${state.query} ${state.view}`;
  useEffect(() => {
    if (last.current !== null && last.current !== key) {
      isFocusLost = document.activeElement === document.body;
      const heading = document.querySelector("main h1");
      if (isFocusLost && heading) heading.focus({ preventScroll: true });
      if (heading) isFocusLost = false;
      scrollTo(0, 0);
    }
    last.current = key;
  }, [key]);
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select"))
        return;
      event.preventDefault();
      document.getElementById("query")?.focus();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function TokenDialog() {
  const dialog = useRef(null);
  const [reason, setReason] = useState("");
  const answer = useRef(null);
  useEffect(() => {
    setTokenPrompt((why) => {
      setReason(why);
      dialog.current.querySelector("input").value = "";
      dialog.current.returnValue = "";
      dialog.current.showModal();
      return new Promise((resolve) => (answer.current = resolve));
    });
  }, []);
  const onClose = () =>
    answer.current?.(dialog.current.returnValue === "use" ? dialog.current.querySelector("input").value.trim() : null);
  return (
    <dialog ref={dialog} id="token-dialog" aria-labelledby="token-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="token-title">This service needs its token</h2>
        <p class="quiet">The token was set when the service was started. The page keeps it until you close this tab.</p>
        <div class="field">
          <label for="token">Token</label>
          <input id="token" type="password" autocomplete="off" aria-describedby="token-problem" />
        </div>
        <p id="token-problem" class="status bad" role="alert">
          {reason}
        </p>
        <div class="row end">
          <button value="use" class="main" id="token-use">
            Use it
          </button>
          <button value="cancel">Cancel</button>
        </div>
      </form>
    </dialog>
  );
}

render(<App />, document.getElementById("app"));
