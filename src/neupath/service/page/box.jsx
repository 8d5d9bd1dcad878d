// The one box: finds nodes of all types by name or id, and meta-paths; used with the arrow keys, Enter and Escape.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, getCached, graphPath, useAnswer } from "./requests.js";
import { announce, count, isNamed, labelOf, shown, TypeChip } from "./words.jsx";

const DEBOUNCE = 80;
const LIMIT = 12;
const LOOKS_LIKE_PATH = /^[A-Z]{3,}$|[-[]/;

/** Find nodes, and the meta-path that the text may be. */
async function find(graph, text, type, withPaths, signal) {
  const nodes = get(graphPath(graph, "/nodes"), { text, node_type: type, limit: LIMIT }, signal);
  const isPath = withPaths && LOOKS_LIKE_PATH.test(text.trim());
  const path = isPath ? getCached(graphPath(graph, "/metapaths"), { prefix: text }).catch(() => null) : null;
  const parsed = (await path)?.prefix;
  const { nodes: matches, total } = await nodes;
  const isWhole = parsed?.valid && parsed.node_types.length > 1;
  return { nodes: matches, total, path: isWhole ? parsed : null };
}

/** The options of an answer: a meta-path, then nodes. */
function optionsOf(answer) {
  if (!answer) return [];
  const nodes = answer.nodes.map((node) => ({ node }));
  return answer.path
    ? [
        ...nodes.filter(({ node }) => node.match === "exact"),
        { path: answer.path },
        ...nodes.filter(({ node }) => node.match !== "exact"),
      ]
    : nodes;
}

/**
 * A text field that finds nodes. `onNode(node)` and `onPath(parsed)` are called with what is chosen; `value` is the text
 * when nothing is typed. `only` restricts it to one type; otherwise chips choose one. `look` is bare, field or big.
 */
export function NodeBox({
  id,
  graph,
  types,
  label,
  placeholder,
  value = "",
  only = null,
  onNode,
  onPath,
  look = "bare",
}) {
  const [text, setText] = useState(null);
  const [settled, setSettled] = useState(null);
  const [type, setType] = useState(null);
  const [active, setActive] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  const entered = useRef(false);
  const input = useRef(null);
  const chosenType = only ?? type;
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), DEBOUNCE);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => setType(null), [graph]);
  const key = isOpen && settled !== null && settled.trim() ? [graph, settled, chosenType] : null;
  const { data, error, isLoading } = useAnswer(
    key,
    (signal) => find(graph, settled, chosenType, Boolean(onPath), signal),
    graph,
  );
  const isCurrent = settled === text && !isLoading && data !== null;
  const options = optionsOf(data);
  const close = () => {
    setOpen(false);
    setActive(-1);
    entered.current = false;
  };
  const take = (option) => {
    close();
    setText(null);
    input.current.blur();
    if (option.path) onPath(option.path);
    else onNode(option.node);
  };
  useEffect(() => {
    if (!isCurrent) return;
    const sure = options.find((option) => option.path || option.node.match !== "spelling");
    if (entered.current && sure) return void take(active >= 0 ? options[active] : sure);
    const near = options.length && !sure ? "no node is called so; these are spelled alike" : null;
    announce(near ?? (options.length ? `${count(options.length)} of ${count(data.total, "match")}` : "no match"));
    entered.current = false;
  }, [isCurrent, data]);
  const onKeyDown = (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setOpen(true);
      if (options.length)
        setActive((active + step + options.length + (active < 0 && step < 0 ? 1 : 0)) % options.length);
    } else if (event.key === "Enter" && text?.trim()) {
      event.preventDefault();
      const sure = options.find((option) => option.path || option.node.match !== "spelling");
      if (isCurrent && active >= 0) take(options[active]);
      else if (isCurrent && sure) take(sure);
      else {
        entered.current = true;
        setSettled(text);
        setOpen(true);
      }
    } else if (event.key === "Escape") {
      if (!isOpen) setText(null);
      close();
    }
  };
  const list = `${id}-options`;
  return (
    <div class={`combobox ${look}`}>
      <label for={id} class={look === "bare" ? "unseen" : ""}>
        {label}
      </label>
      <input
        id={id}
        ref={input}
        type="text"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={isOpen && key !== null}
        aria-controls={list}
        aria-activedescendant={active >= 0 ? `${list}-${active}` : undefined}
        autocomplete="off"
        spellcheck={false}
        autocapitalize="off"
        placeholder={placeholder}
        value={text ?? value}
        onInput={(event) => {
          setText(event.target.value);
          setActive(-1);
          setOpen(true);
          entered.current = false;
        }}
        onFocus={(event) => event.target.select()}
        onBlur={(event) => {
          if (!event.currentTarget.parentElement.contains(event.relatedTarget)) {
            close();
            setText(null);
          }
        }}
        onKeyDown={onKeyDown}
      />
      {isOpen && key !== null && (
        <div class="options" onPointerDown={(event) => event.preventDefault()}>
          {!only && types.length > 1 && (
            <TypeFilter
              types={types}
              chosen={type}
              choose={(one) => {
                setType(one);
                setActive(-1);
                input.current.focus();
              }}
            />
          )}
          <ul id={list} role="listbox" aria-label="Matches">
            {options.map((option, place) => (
              <li
                key={optionKey(option)}
                id={`${list}-${place}`}
                role="option"
                aria-selected={place === active}
                class="option"
                onClick={() => take(option)}
              >
                {option.path ? <PathOption path={option.path} /> : <NodeOption node={option.node} types={types} />}
              </li>
            ))}
            {!options.length && (
              <li class="none" role="option" aria-disabled="true" aria-selected="false">
                {error ? shown(error.message, 300) : isCurrent ? "No match." : "Looking …"}
              </li>
            )}
          </ul>
        </div>
      )}
    </div>
  );
}

const optionKey = ({ node, path }) => (path ? `path ${path.metapath}` : `${node.node_type}\n${node.id}`);

function NodeOption({ node, types }) {
  return (
    <>
      <bdi class="name">{shown(labelOf(node), 80)}</bdi>
      {isNamed(node) && <bdi class="id">{shown(node.id, 60)}</bdi>}
      {node.differs && (
        <span class="quiet">
          {shown(node.differs.attribute, 30)} {shown(node.differs.value, 40)}
        </span>
      )}
      <span class="quiet">{count(node.degree, "edge")}</span>
      {node.match === "spelling" && <span class="quiet">similar spelling</span>}
      <TypeChip type={node.node_type} types={types} />
    </>
  );
}

function PathOption({ path }) {
  return (
    <>
      <span class="name">{shown(path.metapath, 80)}</span>
      <span class="type">meta-path</span>
    </>
  );
}

function TypeFilter({ types, chosen, choose }) {
  return (
    <div class="chips filter" role="group" aria-label="Look in">
      {[null, ...types].map((type) => (
        <button
          type="button"
          class="chip"
          key={type ?? ""}
          aria-pressed={type === chosen}
          tabindex={-1}
          onClick={() => choose(type)}
        >
          {type === null ? "all" : shown(type, 30)}
        </button>
      ))}
    </div>
  );
}
