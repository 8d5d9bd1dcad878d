// Calls: requests to the service, the token it may ask for, and the events of a job.

import { at } from "./dom.js";

const KEY = "neupath.token";
const PAUSE = 1000;
const MOST_FAILURES = 30;
let asking = null;

/** What the service refused, in its own sentence. */
export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/** GET a path under /api with the words of a query string; those that are null are left out. */
export function get(path, words = {}, options = {}) {
  const given = Object.entries(words).filter(([, value]) => value !== null && value !== undefined);
  const query = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return call(query ? `${path}?${query}` : path, options);
}

export function post(path, content, options = {}) {
  const headers = { ...options.headers, "Content-Type": "application/json" };
  return call(path, { ...options, method: "POST", body: JSON.stringify(content), headers });
}

export function graphPath(graph, rest = "") {
  return `/graphs/${encodeURIComponent(graph)}${rest}`;
}

async function call(path, options = {}) {
  const answer = await ask(path, options);
  return options.headers?.Accept ? answer.blob() : answer.json();
}

/** Send a request until it has a token that is right, or nobody gives one. */
async function ask(path, { signal, method = "GET", body, headers = {} }) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const sent = token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
    const answer = await send(`/api${path}`, { signal, method, body, headers: sent });
    if (answer.ok) return answer;
    const sentence = await sentenceOf(answer);
    if (answer.status !== 401) throw new Refused(answer.status, sentence);
    if (token === sessionStorage.getItem(KEY) && !(await askForToken(token ? sentence : ""))) {
      throw new Refused(401, sentence);
    }
  }
}

async function send(address, request) {
  try {
    return await fetch(address, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service does not answer. Is it still running?");
  }
}

async function sentenceOf(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return `The service answered with status ${answer.status}.`;
  }
}

/** Ask for the token, once for all calls that wait for it; it is kept until the browser's tab is closed. */
function askForToken(complaint) {
  asking ??= new Promise((resolve) => {
    const dialog = at("token-dialog");
    at("token-problem").textContent = complaint;
    at("token").value = "";
    dialog.returnValue = "";
    const onClose = () => {
      const token = dialog.returnValue === "use" ? at("token").value.trim() : "";
      if (token) sessionStorage.setItem(KEY, inHeader(token));
      asking = null;
      resolve(Boolean(token));
    };
    dialog.addEventListener("close", onClose, { once: true });
    dialog.showModal();
  });
  return asking;
}

/** Return a token as a header can hold it: other letters than those of ASCII as their bytes. */
function inHeader(token) {
  return String.fromCodePoint(...new TextEncoder().encode(token)).replace(/[\0\r\n]/g, "");
}

/** Yield the events of a job as {event, data} until it ends, over another connection where one breaks. */
export async function* events(job, signal) {
  for (let last = 0, failures = 0; ; failures += 1) {
    try {
      for await (const { id, event, data } of listen(job, last, signal)) {
        [last, failures] = [id, 0];
        yield { event, data };
        if (event === "end") return;
      }
    } catch (error) {
      const isAway = !(error instanceof Refused) || error.status === 0 || error.status === 503;
      if (error.name === "AbortError" || !isAway || failures >= MOST_FAILURES) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

/** Yield the events of one connection; EventSource would send no token. */
async function* listen(job, last, signal) {
  const headers = last ? { "Last-Event-ID": String(last) } : {};
  const answer = await ask(`/jobs/${job}/events`, { signal, headers });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
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
