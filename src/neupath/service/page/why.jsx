// Why two nodes are similar: one sentence, the groups that make the score, their paths, and what would change it.

import { useEffect, useRef, useState } from "preact/hooks";
import { PathPicture, useRoom } from "./drawing.jsx";
import { explain } from "./graphs.js";
import { saveReasons } from "./share.jsx";
import { NodeLink } from "./node.jsx";
import { JobRun } from "./jobs.jsx";
import { useAnswer } from "./requests.js";
import { change, linkTo } from "./store.js";
import {
  announce,
  Bar,
  count,
  labelOf,
  Panel,
  percent,
  pluralOf,
  Problem,
  score,
  shown,
  signed,
  SignedBar,
  Waiting,
} from "./words.jsx";

const DRAWN = 10;
const MOST_DRAWN = 60;
const LISTED = 12; // contributions that are listed at first
const FEW_TIES = 5; // groups of one share that are listed as rows

/** The explanation of one hit. `subject` has the graph, the meaning, the query, the target and how the list looks. */
export function Why({ state, meaning, types, queries, set, target, k, version, rankAgain }) {
  const { graph, queryType, by, all } = state;
  const asked = { set, type: queryType, target: target.id, by, k };
  const key = [graph, meaning, set, target.id, by, k, all];
  const answer = useAnswer(
    ["why", ...key],
    (signal) => explain(graph, meaning, { ...asked, all }, signal),
    JSON.stringify([graph, meaning, set, target.id]),
  );
  const { data: why, error, isLoading, isStale, retry } = answer;
  const section = useRef(null);
  const named = why?.target?.id !== undefined && !target.name ? { ...target, name: why.target.name } : target;
  useEffect(() => {
    if (why) announce(`Why ${labelOf(named)}: ${why.summary ?? `score ${score(why.score)}`}`);
  }, [why]);
  useEffect(() => {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (why) section.current?.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
  }, [Boolean(why), target.id]);
  const close = () => {
    change({ target: null, targetType: null, group: null, by: null });
    document.querySelector(`#hits-${state.side} .hit[data-id="${CSS.escape(String(target.id))}"] .open`)?.focus();
  };
  return (
    <section id="why" ref={section} aria-labelledby="why-title" aria-busy={isLoading} class={isStale ? "stale" : ""}>
      <div class="heading">
        <h2 id="why-title" tabindex={-1}>
          <bdi>{queries.length > 1 ? `${count(queries.length)} nodes` : shown(labelOf(queries[0]), 60)}</bdi> and{" "}
          <bdi>{shown(labelOf(named), 60)}</bdi>
        </h2>
        {queries.length === 1 && (
          <a
            class="button"
            href={linkTo({ view: "relate", target: String(target.id), targetType: target.node_type ?? queryType })}
          >
            All relations
          </a>
        )}
        <button type="button" id="why-close" aria-label="Close the explanation" onClick={close}>
          ✕
        </button>
      </div>
      {error && <Problem error={error} retry={retry} />}
      {isLoading && !why && <Waiting text="Finding the paths" />}
      {why && version !== undefined && why.version !== version && (
        <div class="problem changed" role="alert">
          <p>
            The graph has changed: the list is of version {version}, this explanation of version {why.version}.
          </p>
          <button type="button" onClick={rankAgain}>
            Rank again
          </button>
        </div>
      )}
      {why && (
        <Explanation why={why} state={state} types={types} meaning={meaning} queries={queries} target={target} k={k} />
      )}
      {why && <Reasons readAll={() => explain(graph, meaning, { ...asked, all: true })} name={reasonsName(state)} />}
      <p class="go">
        <NodeLink node={{ node_type: queryType, ...named }} /> <span class="quiet">search from here</span>
      </p>
    </section>
  );
}

const reasonsName = ({ graph, query, target }) => `reasons-${graph}-${query}-${target}`;

/** All reasons as a file. */
function Reasons({ readAll, name }) {
  const [error, setError] = useState(null);
  const save = (format) => async () => {
    try {
      const why = await readAll();
      saveReasons(why, partsOf(why), format, name);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <div class="row wrap reasons-tools">
      <span class="quiet">All reasons:</span>
      {["CSV", "JSON"].map((format) => (
        <button type="button" key={format} id={`reasons-${format.toLowerCase()}`} onClick={save(format)}>
          {format}
        </button>
      ))}
      {error && <Problem error={error} />}
    </div>
  );
}

/**
 * Convert the explanation of a measure, a combination or a learned model into a list of parts. Models give fewer fields:
 * what adds to a score may have no paths, and attention has a share but no score.
 */
function partsOf(why) {
  return (why.parts ?? [why]).map((part) => ({
    ...part,
    total: why.score,
    amount: part.score,
    groups: (part.groups ?? []).map((group) => ({
      ...group,
      paths: group.paths ?? 0,
      instances: group.instances ?? [],
      amount: group.score ?? group.share,
    })),
  }));
}

function Explanation({ why, state, types, meaning, queries, target, k }) {
  const parts = partsOf(why);
  const isFiltered = state.where.length + state.unless.length > 0;
  const standing = why.rank
    ? `rank ${count(why.rank)} of ${count(why.targets)}${isFiltered ? " before filters" : ""}`
    : null;
  return (
    <div id="why-body">
      <p class="summary">{shown(why.summary ?? parts[0].summary ?? "", 600)}</p>
      <p class="quiet standing">
        Score {score(why.score)}
        {standing && `, ${standing}`}
      </p>
      {why.why_not && <p class="why-not">{shown(why.why_not.sentence, 600)}</p>}
      {why.members && <MemberShares members={why.members} />}
      {why.learners && <Learners learners={why.learners} total={why.score} />}
      {contributionsOf(why).map(({ learner, ...split }) => (
        <Contributions key={learner} title={learner && `What decides the score of ${learner}`} {...split} />
      ))}
      {why.learners && <SourceOfPaths learners={why.learners} />}
      {parts.map((part) => (
        <Panel
          key={part.metapath ?? "model"}
          what="This part"
          about={JSON.stringify([state.group, state.by, state.all])}
        >
          <Part part={part} state={state} types={types} isOne={parts.length === 1} />
        </Panel>
      ))}
      {meaning.metapath && why.score > 0 && queries.length === 1 && (
        <WhatIf state={state} meaning={meaning} query={queries[0]} target={target} why={why} k={k} />
      )}
    </div>
  );
}

/** What each node of a set adds to the score. */
function MemberShares({ members }) {
  const most = Math.max(1e-12, ...members.map((member) => member.share));
  return (
    <>
      <h3 class="by-member">By node of the query</h3>
      <ul class="weights">
        {members.map((member) => (
          <li key={member.id}>
            <span class="name">
              <NodeLink node={member} most={60} />
            </span>
            <span class="quiet">{count(member.paths, "path")}</span>
            <Bar share={member.share / most} />
            <span class="score">{percent(member.share)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** What each learner of a stack adds to its score. */
function Learners({ learners, total }) {
  return (
    <div class="scrolling">
      <table class="learners">
        <thead>
          <tr>
            <th scope="col">Learner</th>
            <th scope="col">Weight</th>
            <th scope="col">Its own score</th>
            <th scope="col">Adds</th>
          </tr>
        </thead>
        <tbody>
          {learners.map((one) => (
            <tr key={one.name}>
              <td>{shown(one.name, 40)}</td>
              <td>{one.weight.toFixed(2)}</td>
              <td>{score(one.score)}</td>
              <td>{signed(one.share)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colspan={3}>
              Score of the mix
            </th>
            <td>{signed(total)}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

/** What boosted trees add up, of a model or of those learners of a stack that split their scores. */
function contributionsOf(why) {
  const all = why.learners?.map((one) => ({ learner: one.name, ...one.explanation })) ?? [{ ...why, learner: null }];
  return all.filter((one) => one.contributions?.length);
}

/** All that raises and lowers the margin of a score, the largest first, as signed bars. */
function Contributions({ title, contributions, base, margin, score: own }) {
  const [isWhole, setWhole] = useState(false);
  const most = Math.max(...contributions.map((one) => Math.abs(one.value)));
  const rest = isWhole ? [] : contributions.slice(LISTED);
  return (
    <div class="contributions">
      <h3>{shown(title ?? "What decides the score", 80)}</h3>
      <p class="quiet">
        {signed(base)} for any pair, and these, add up to {signed(margin)}; squashed to 0 to 1, that is {score(own)}.
      </p>
      <ul class="weights">
        {contributions.slice(0, contributions.length - rest.length).map((one) => (
          <li key={one.name}>
            <span class="name">{shown(one.name, 200)}</span>
            <SignedBar share={one.value / most} />
            <span class="score">{signed(one.value)}</span>
          </li>
        ))}
      </ul>
      {rest.length > 0 && (
        <p class="quiet">
          and {count(rest.length)} more, together {signed(rest.reduce((sum, one) => sum + one.value, 0))}{" "}
          <button type="button" class="show-all" onClick={() => setWhole(true)}>
            Show all {count(contributions.length)}
          </button>
        </p>
      )}
    </div>
  );
}

/** Say whose paths are shown: those of the heaviest learner that shows any. */
function SourceOfPaths({ learners }) {
  const source = learners.find((one) => one.explanation);
  const isShown = source && (source.explanation.groups ?? source.explanation.parts)?.length > 0;
  return isShown ? <h3 class="source-of-paths">Paths of {shown(source.name, 40)}</h3> : null;
}

/** Say what the numbers of a formula are. */
function formulaWords({ measure, denominators, numerator, members }) {
  if (members || measure !== "pathsim" || !denominators || denominators.length !== 2) return null;
  const whole = (value) => (Number.isInteger(value) ? count(value) : score(value));
  return `${whole(numerator)} ${numerator === 1 ? "path joins" : "paths join"} them; ${whole(denominators[0])} and ${whole(denominators[1])} lead from each back to itself.`;
}

function Part({ part, state, types, isOne }) {
  const { groups } = part;
  const chosen = groups.find((group) => keyOf(group) === state.group) ?? null;
  const room = useRoom();
  const drawn = chosen
    ? chosen.instances
    : groups
        .slice(0, state.all ? MOST_DRAWN : DRAWN)
        .flatMap(
          (group) => group.drawn ?? group.instances.slice(0, 1).map((path) => ({ ...path, share: group.amount })),
        );
  const total = groups.length + (part.more_groups?.groups ?? 0);
  const layers = part.by ? [...new Set(pathTypes(part))] : [];
  return (
    <div class="part" ref={room.place}>
      {!isOne && (
        <h3>
          {score(part.weight)} × {shown(part.metapath, 120)}: {percent(part.total ? part.share / part.total : 0)} of the
          score
        </h3>
      )}
      {part.formula && (
        <p class="formula" title={formulaWords(part) ?? undefined}>
          {part.measure} = {part.formula} = {score(part.score)}
          <span class="quiet"> {formulaWords(part)}</span>
        </p>
      )}
      {groups.length > 0 && part.by && (
        <div class="groups-head">
          <h3>By {shown(part.by.node_type, 40)}</h3>
          {isOne && layers.length > 1 && (
            <label class="small">
              Group by{" "}
              <select
                id="by"
                value={state.by ?? part.by.node_type}
                onChange={(event) => change({ by: event.target.value, group: null }, { replace: true })}
              >
                {layers.map((type) => (
                  <option key={type} value={type}>
                    {shown(type, 40)}
                  </option>
                ))}
              </select>
            </label>
          )}
        </div>
      )}
      <ol class="groups">
        {runsOf(groups).map((run) =>
          run.length > FEW_TIES ? (
            <Tied key={keyOf(run[0])} groups={run} chosen={chosen} />
          ) : (
            run.map((group) => (
              <Group key={keyOf(group)} group={group} total={groups[0].share} isOpen={group === chosen} />
            ))
          ),
        )}
      </ol>
      {part.more_groups?.groups > 0 && (
        <p class="quiet">
          and {count(part.more_groups.groups, "other")} with {count(part.more_groups.paths, "path")}, together{" "}
          {percent(part.more_groups.share)}{" "}
          {!state.all && (
            <button type="button" class="show-all" onClick={() => change({ all: true }, { replace: true })}>
              Show all {count(total)}
            </button>
          )}
        </p>
      )}
      {drawn.length > 0 && room.width > 0 && (
        <PathPicture
          paths={drawn}
          types={types}
          total={chosen ? chosen.amount : part.by ? part.amount : sumOf(drawn)}
          note={chosen || drawn.length >= total ? "" : `${count(drawn.length)} of ${count(total)} are drawn. `}
          room={room.width}
          name={`paths-${state.query}-${state.target}`}
        />
      )}
      {part.paths && !groups.length && <p class="empty">This model gives no paths for the pair.</p>}
    </div>
  );
}

const keyOf = (group) => `${group.node_type}:${group.id}`;

const sumOf = (paths) => paths.reduce((sum, path) => sum + path.share, 0);

/** Put neighbouring groups of the same share together. */
function runsOf(groups) {
  const runs = [];
  for (const group of groups) {
    const last = runs.at(-1);
    if (last && Math.abs(last[0].share - group.share) <= 1e-12 * Math.abs(group.share)) last.push(group);
    else runs.push([group]);
  }
  return runs;
}

/** Groups of the same share, as a compact list. */
function Tied({ groups, chosen }) {
  const open = groups.find((group) => group === chosen);
  return (
    <li class="group tied">
      <p>
        {count(groups.length)} with {percent(groups[0].share)} each; the rarest, which have the fewest edges, first:
      </p>
      <div class="chips">
        {groups.map((group) => (
          <button
            type="button"
            key={keyOf(group)}
            class={`chip reason ${group === open ? "open" : ""}`}
            aria-expanded={group === open}
            data-id={group.id}
            onClick={toggleOf(group, group === open)}
          >
            <bdi>{shown(labelOf(group), 60)}</bdi>
            {group.paths > 1 && <span class="id">{count(group.paths, "path")}</span>}
          </button>
        ))}
      </div>
      {open && <Instances group={open} />}
    </li>
  );
}

const toggleOf = (group, isOpen) => () => change({ group: isOpen ? null : keyOf(group) }, { replace: true });

/** The types between the two ends, by which paths can be grouped. */
function pathTypes(part) {
  const path = part.groups[0]?.instances[0];
  return path ? path.nodes.slice(1, -1).map((node) => node.node_type) : [part.by.node_type];
}

function Group({ group, total, isOpen }) {
  return (
    <li class={`group ${isOpen ? "open" : ""}`}>
      <button type="button" class="open" aria-expanded={isOpen} onClick={toggleOf(group, isOpen)} data-id={group.id}>
        <span class="share">{percent(group.share)}</span>
        <Bar share={total ? group.share / total : 0} />
        <bdi class="name">{shown(labelOf(group), 80)}</bdi>
        {group.paths > 0 && <span class="quiet">{count(group.paths, "path")}</span>}
      </button>
      {isOpen && <Instances group={group} />}
    </li>
  );
}

function Instances({ group }) {
  const others = group.paths - group.instances.length;
  return (
    <>
      <ol class="instances">
        {group.instances.map((path, index) => (
          <li key={index}>
            <span class="share">{percent(group.amount ? path.share / group.amount : 0)}</span>
            <span class="walk">
              {path.nodes.map((node, place) => (
                <span key={place}>
                  {place > 0 && <span class="link"> {shown(path.links[place - 1], 40)} </span>}
                  <NodeLink node={node} most={60} />
                </span>
              ))}
            </span>
          </li>
        ))}
      </ol>
      {others > 0 && (
        <p class="quiet">
          and {count(others, "other path")} by {shown(labelOf(group), 60)}
        </p>
      )}
    </>
  );
}

/** What would move the hit: single removals with their effect on the rank, and the smallest set that moves it out. */
function WhatIf({ state, meaning, query, target, why, k }) {
  const type = why.by?.node_type;
  const isIn = why.rank !== null && why.rank <= k;
  const change_ = isIn ? { remove: type ?? "edges" } : { add: "edges" };
  const request = {
    kind: "whatif",
    graph: state.graph,
    query: query.id,
    target: target.id,
    ...meaning,
    k,
    limit: 6,
    ...change_,
  };
  return (
    <JobRun
      key={JSON.stringify(request)}
      request={request}
      isAsked={state.whatIf}
      ask={() => change({ whatIf: true }, { replace: true })}
      label={
        isIn
          ? `What if ${type ? pluralOf(shown(type, 30)) : "edges"} were missing?`
          : `What would bring it among the best ${k}?`
      }
    >
      {(result) => <WhatIfResult result={result} k={k} />}
    </JobRun>
  );
}

const elementText = (element) =>
  element.relation ? `${labelOf(element.source)} ${element.relation} ${labelOf(element.target)}` : labelOf(element);

function WhatIfResult({ result, k }) {
  const { smallest, singles, change: kind, rank, reason, optimal } = result;
  const verb = kind === "remove" ? "Without" : "With";
  const moved = kind === "remove" ? `out of the best ${k}` : `into the best ${k}`;
  return (
    <div class="what-if">
      <ul>
        {singles.map((single, place) => (
          <li key={place}>
            {verb} <b>{shown(single.elements.map(elementText).join(", "), 160)}</b>: rank {rank ?? "–"} →{" "}
            {single.rank ?? "none"}, score {score(result.score)} → {score(single.score)}
          </li>
        ))}
      </ul>
      {smallest && smallest.size > 1 && (
        <p>
          {optimal ? "At least" : "At most"} {count(smallest.size)}{" "}
          {kind === "remove" ? "must be missing" : "are needed"} to move it {moved}:{" "}
          {shown(smallest.elements.map(elementText).join(", "), 400)}.
        </p>
      )}
      {!singles.length && !smallest && <p>{shown(reason ?? "Nothing that was tried changes it.", 400)}</p>}
    </div>
  );
}
