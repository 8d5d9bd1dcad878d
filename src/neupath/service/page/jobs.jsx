// Jobs: work of minutes, started here, watched, cancelled and downloaded; and the list of all of them.

import { useEffect, useRef, useState } from "preact/hooks";
import { refreshServed, when } from "./graphs.js";
import { get, getFile, post, runJob, useAnswer } from "./requests.js";
import { addressOf, INITIAL } from "./store.js";
import { announce, count, download, Problem, shown, Waiting } from "./words.jsx";

const REFRESH = 2000;
const WORK = {
  infer: "Inferring from examples",
  join: "Searching from every node",
  train: "Training a model",
  whatif: "Looking for what would change it",
  significance: "Searching permuted graphs",
};

const KINDS = {
  infer: "Infer",
  join: "Search from every node",
  train: "Train",
  whatif: "What would change",
  significance: "Chance",
};

const ONLY_HERE = new Set(["whatif", "significance"]); // nobody asks for their results later: cancelled when left

/** Say in words how far a job is. */
function stateWords(job) {
  const { done, total, text } = job.progress ?? {};
  const extent = total ? `, ${count(done)} of ${count(total)}` : "";
  if (job.state === "waiting") return "waiting for its turn";
  if (job.state === "running") return `${WORK[job.kind] ?? "running"}${extent}${text ? ` (${shown(text, 80)})` : ""}`;
  return job.state === "failed" ? `failed: ${shown(job.error ?? "", 300)}` : job.state;
}

function JobProgress({ job }) {
  const { done, total } = job.progress ?? {};
  return (
    <div class="job-progress" role="status">
      <p>{stateWords(job)} …</p>
      <progress aria-label="Progress" {...(total ? { max: total, value: done } : {})} />
      <button type="button" class="cancel" onClick={() => post(`/jobs/${job.id}/cancel`)}>
        Cancel
      </button>
    </div>
  );
}

/**
 * A button that runs a job and shows what comes of it, in its place. `isAsked` runs it at once, as a link to its result
 * does; `ask` is called when the button is.
 */
export function JobRun({ request, label, children, onResult = null, isMain = false, isAsked = false, ask = null }) {
  const [run, setRun] = useState({ job: null, result: null, error: null, isRunning: false });
  const controller = useRef(null);
  const running = useRef(null);
  const leave = () => {
    controller.current?.abort();
    if (running.current && ONLY_HERE.has(request.kind)) post(`/jobs/${running.current}/cancel`).catch(() => {});
  };
  useEffect(() => {
    if (isAsked) start();
    return leave;
  }, []);
  const start = async () => {
    controller.current = new AbortController();
    const { signal } = controller.current;
    setRun({ job: null, result: null, error: null, isRunning: true });
    try {
      const { result, job: ended } = await runJob(
        request,
        (job) => {
          running.current = job.id;
          setRun({ job, result: null, error: null, isRunning: true });
        },
        signal,
      );
      running.current = null;
      setRun({ job: ended, result, error: null, isRunning: false });
      announce(`${label}: done`);
      onResult?.(result);
    } catch (error) {
      if (error.name !== "AbortError") setRun({ job: null, result: null, error, isRunning: false });
    }
  };
  return (
    <div class="job-run">
      {!run.isRunning && !run.result && (
        <button
          type="button"
          class={isMain ? "main" : ""}
          onClick={() => {
            start();
            ask?.();
          }}
        >
          {label}
        </button>
      )}
      {run.isRunning && (run.job ? <JobProgress job={run.job} /> : <Waiting text="Starting the job" />)}
      {run.error && <Problem error={run.error} />}
      {run.result && children?.(run.result, run.job)}
    </div>
  );
}

const MODELS = new Set(["infer", "train"]); // kinds of jobs whose results can be searched by

/** A link to the first page, to choose the node to search from by the model that a job has made. */
function ModelLink({ job }) {
  return (
    <a class="button" href={addressOf({ ...INITIAL, graph: job.graph, model: job.id })} onClick={refreshServed}>
      Search by it
    </a>
  );
}

/** All jobs of the service. */
export function JobsPage() {
  const [tick, setTick] = useState(0);
  const { data: jobs, error, retry } = useAnswer(["jobs", tick], (signal) => get("/jobs", {}, signal), "jobs");
  const isBusy = jobs?.some((job) => job.state === "waiting" || job.state === "running");
  useEffect(() => {
    if (!isBusy) return undefined;
    const timer = setTimeout(() => setTick(tick + 1), REFRESH);
    return () => clearTimeout(timer);
  }, [isBusy, tick, jobs]);
  const act = (action) => async () => {
    await action();
    setTick(tick + 1);
  };
  return (
    <section aria-labelledby="jobs-title" class="jobs">
      <h1 id="jobs-title" tabindex={-1}>
        Jobs
      </h1>
      <p class="quiet">
        Work that takes long runs in a process of its own on the service. It goes on when you close this page.
      </p>
      {error && <Problem error={error} retry={retry} />}
      {jobs && !jobs.length && (
        <p class="empty">
          No jobs yet. A search offers “every node” as a job, an explanation “what if”, and Examples trains models.
        </p>
      )}
      <ul class={jobs?.length ? "job-list" : ""}>
        {[...(jobs ?? [])].reverse().map((job) => (
          <li key={job.id} class={`job ${job.state}`}>
            <div class="grow">
              <p>
                <b>{KINDS[job.kind] ?? job.kind}</b>
                {job.title && <>: {shown(job.title, 120)}</>} on {shown(job.graph, 40)}
              </p>
              <p class="quiet">
                {stateWords(job)}
                {job.started && job.ended ? `, ${duration(job.ended - job.started)}` : ""}, {when(job.created)}
              </p>
              {(job.state === "running" || job.state === "waiting") && (
                <progress
                  aria-label={`Progress of ${KINDS[job.kind] ?? job.kind} ${job.title}`}
                  {...(job.progress?.total ? { max: job.progress.total, value: job.progress.done } : {})}
                />
              )}
            </div>
            {job.state === "done" && MODELS.has(job.kind) && <ModelLink job={job} />}
            {job.state === "done" && (
              <button type="button" onClick={() => save(job)}>
                Download
              </button>
            )}
            {(job.state === "running" || job.state === "waiting") && (
              <button type="button" onClick={act(() => post(`/jobs/${job.id}/cancel`))}>
                Cancel
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

const duration = (seconds) => (seconds < 90 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`);

async function save(job) {
  const suffix = job.kind === "join" ? "parquet" : "json";
  download(`${job.kind}-${job.graph}-${job.id}.${suffix}`, await getFile(`/jobs/${job.id}/result`));
}
