// The service over HTTP: requests with the token, a cache of small answers, and the one rule for answers that are stale.

import { useEffect, useReducer, useRef } from "preact/hooks";
import { tabStorage } from "./store.js";

const TOKEN_KEY = "neupath.token";
const RETRY_DELAY = 1500;
const MAX_FAILURES = 30;
const MOST_CACHED = 300;
const cache = new Map();
const waiting = new Set(); // what to do when the service answers again
let pinging = false;
let tokenRequest = null;
let askForToken = async () => null;

/** Set the function that asks the user for the token; it resolves to the token, or null. */
export function setTokenPrompt(prompt) {
  askForToken = prompt;
}

/** An error response; the message is the one from the service, the status 0 if there was no response. */
class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function queryString(parameters) {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((one) => one !== null && one !== undefined)
      .map((one) => `${name}=${encodeURIComponent(one)}`),
  );
  return pairs.length ? `?${pairs.join("&")}` : "";
}

export function urlOf(path, parameters = {}) {
  return `/api${path}${queryString(parameters)}`;
}

/** GET a path under /api; parameters that are null or undefined are left out of the query string. */
export async function get(path, parameters = {}, signal = undefined) {
  return (await send(urlOf(path, parameters), { signal })).json();
}

export async function post(path, content = {}, signal = undefined) {
  const headers = { "Content-Type": "application/json" };
  return (await send(`/api${path}`, { signal, method: "POST", body: JSON.stringify(content), headers })).json();
}

/** POST, and return the answer as a file of the media type that is asked for. */
export async function postForFile(path, content, accept) {
  const headers = { "Content-Type": "application/json", Accept: accept };
  return (await send(`/api${path}`, { method: "POST", body: JSON.stringify(content), headers })).blob();
}

export async function getFile(path) {
  return (await send(`/api${path}`, {})).blob();
}

export const graphPath = (graph, rest = "") => `/graphs/${encodeURIComponent(graph)}${rest}`;

/** GET what changes with the graph only; the least recently used answers are forgotten. */
export function getCached(path, parameters = {}) {
  const key = urlOf(path, parameters);
  const answer = cache.get(key) ?? get(path, parameters);
  cache.delete(key);
  cache.set(key, answer);
  answer.catch(() => cache.delete(key));
  if (cache.size > MOST_CACHED) cache.delete(cache.keys().next().value);
  return answer;
}

/** Send a request; on 401 ask for the token and repeat, until it is right or the user cancels. */
async function send(url, { headers = {}, ...options }) {
  for (;;) {
    const token = tabStorage.getItem(TOKEN_KEY);
    const authorized = token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
    const response = await connect(url, { ...options, headers: authorized });
    if (response.ok) return response;
    const message = await errorMessage(response);
    if (response.status !== 401) throw new RequestError(response.status, message);
    if (token === tabStorage.getItem(TOKEN_KEY) && !(await enterToken(token ? message : ""))) {
      throw new RequestError(401, message);
    }
  }
}

async function connect(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, "The service does not answer. This page tries again until it does.");
  }
}

async function errorMessage(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `The service answered with status ${response.status}.`;
  }
}

/** Ask for the token, once for all requests that wait for it; sessionStorage keeps it until the tab is closed. */
function enterToken(reason) {
  tokenRequest ??= askForToken(reason).then((token) => {
    tokenRequest = null;
    if (token) tabStorage.setItem(TOKEN_KEY, toHeader(token));
    return Boolean(token);
  });
  return tokenRequest;
}

/** Encode a token for a header: UTF-8 bytes as Latin-1 characters, without NUL and line breaks. */
function toHeader(token) {
  return String.fromCodePoint(...new TextEncoder().encode(token)).replace(/[\0\r\n]/g, "");
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Ask until the service answers again; then repeat the requests that it did not answer. */
async function ping() {
  if (pinging) return;
  pinging = true;
  for (;;) {
    await Promise.race([
      pause(RETRY_DELAY),
      new Promise((resolve) => addEventListener("online", resolve, { once: true })),
    ]);
    if (!waiting.size) break;
    try {
      await fetch("/api/health");
      for (const retry of [...waiting]) retry();
      break;
    } catch {
      // not yet
    }
  }
  pinging = false;
}

/**
 * Ask for what a key stands for whenever the key changes, and return the answer to the present key and to no other.
 *
 * This is the one rule for stale answers: a request belongs to one place on the page and one key. It is aborted when its
 * key is no longer the one that is needed, and an answer with another key is dropped. While a request runs, the last
 * answer stays in `data`, marked as `stale`, if it is about the same `subject`. Without a connection it is repeated when
 * there is one again.
 */
export function useAnswer(key, load, subject = null) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const slot = useRef({ key: null, about: null, data: null, error: null }).current;
  const wanted = key === null ? null : JSON.stringify(key);
  const retry = useRef(null);
  useEffect(() => {
    if (wanted === null) return undefined;
    const controller = new AbortController();
    const settle = (part) => {
      if (controller.signal.aborted) return;
      Object.assign(slot, { key: wanted, about: subject, data: null, error: null }, part);
      redraw();
    };
    const ask = () => {
      waiting.delete(ask);
      if (slot.error) Object.assign(slot, { key: null, error: null });
      redraw();
      load(controller.signal).then(
        (data) => settle({ data }),
        (error) => {
          if (error.name === "AbortError") return;
          if (error.status === 0) waiting.add(ask) && ping();
          settle({ error });
        },
      );
    };
    retry.current = ask;
    ask();
    return () => {
      waiting.delete(ask);
      controller.abort();
    };
  }, [wanted]);
  const isAnswered = wanted !== null && slot.key === wanted;
  const isKept = !isAnswered && wanted !== null && subject !== null && slot.about === subject;
  return {
    data: isAnswered || isKept ? slot.data : null,
    error: isAnswered ? slot.error : null,
    isLoading: wanted !== null && !isAnswered,
    isStale: isKept && slot.data !== null,
    retry: () => retry.current?.(),
  };
}

// ---- Jobs -----------------------------------------------------------------------------------------
/** Start a job, or go on with one, and yield its state until it ends. */
async function* followJob(job, signal) {
  let latest = job;
  yield latest;
  for await (const { event, data } of events(job.id, signal)) {
    latest = event === "progress" ? { ...latest, progress: data } : data;
    yield latest;
  }
}

/** Start a job, report its state while it runs, and return its result and the job. */
export async function runJob(request, onState, signal) {
  let latest = await post("/jobs", request, signal);
  for await (const job of followJob(latest, signal)) {
    latest = job;
    onState(job);
  }
  if (latest.state === "cancelled") throw new Error("The job was cancelled.");
  if (latest.state === "failed") throw new Error(latest.error);
  return { result: await get(`/jobs/${latest.id}/result`, {}, signal), job: latest };
}

/** Yield the events of a job as {event, data} until it ends; reconnect if the connection breaks. */
async function* events(job, signal) {
  for (let last = 0, failures = 0; ; failures += 1) {
    try {
      for await (const { id, event, data } of listen(job, last, signal)) {
        [last, failures] = [id, 0];
        yield { event, data };
        if (event === "end") return;
      }
    } catch (error) {
      const isUnreachable = !(error instanceof RequestError) || error.status === 0 || error.status === 503;
      if (error.name === "AbortError" || !isUnreachable || failures >= MAX_FAILURES) throw error;
    }
    await pause(RETRY_DELAY);
  }
}

/** Yield the events of one connection. EventSource cannot send the token. */
async function* listen(job, last, signal) {
  const headers = last ? { "Last-Event-ID": String(last) } : {};
  const response = await send(`/api/jobs/${encodeURIComponent(job)}/events`, { signal, headers });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    yield* blocks.map(readEvent).filter((event) => event.data);
  }
}

function readEvent(block) {
  const lines = block
    .split("\n")
    .map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]);
  const { id, event, data } = Object.fromEntries(lines);
  return { id: Number(id), event, data: data && JSON.parse(data) };
}
