// HTTP client of the page: requests, the token, and the event stream of a job.

import { at } from "./dom.js";

const TOKEN_KEY = "neupath.token";
const RETRY_DELAY = 1000;
const MAX_FAILURES = 30;
let tokenRequest = null;

/** An error response; the message is the one from the service, the status 0 if there was no response. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** GET a path under /api; parameters that are null or undefined are left out of the query string. */
export function get(path, parameters = {}, options = {}) {
  const entries = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  const query = entries.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
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
  const response = await request(path, options);
  return options.headers?.Accept ? response.blob() : response.json();
}

/** Send a request; on 401 ask for the token and repeat, until it is right or the user cancels. */
async function request(path, { signal, method = "GET", body, headers = {} }) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const authorized = token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
    const response = await send(`/api${path}`, { signal, method, body, headers: authorized });
    if (response.ok) return response;
    const message = await errorMessage(response);
    if (response.status !== 401) throw new RequestError(response.status, message);
    if (token === sessionStorage.getItem(TOKEN_KEY) && !(await askForToken(token ? message : ""))) {
      throw new RequestError(401, message);
    }
  }
}

async function send(url, init) {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, "The service does not answer. Is it still running?");
  }
}

async function errorMessage(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `The service answered with status ${response.status}.`;
  }
}

/** Ask for the token, once for all calls that wait for it; sessionStorage keeps it until the tab is closed. */
function askForToken(reason) {
  tokenRequest ??= new Promise((resolve) => {
    const dialog = at("token-dialog");
    at("token-problem").textContent = reason;
    at("token").value = "";
    dialog.returnValue = "";
    const onClose = () => {
      const token = dialog.returnValue === "use" ? at("token").value.trim() : "";
      if (token) sessionStorage.setItem(TOKEN_KEY, toHeader(token));
      tokenRequest = null;
      resolve(Boolean(token));
    };
    dialog.addEventListener("close", onClose, { once: true });
    dialog.showModal();
  });
  return tokenRequest;
}

/** Encode a token for a header: UTF-8 bytes as Latin-1 characters, without NUL and line breaks. */
function toHeader(token) {
  return String.fromCodePoint(...new TextEncoder().encode(token)).replace(/[\0\r\n]/g, "");
}

/** Yield the events of a job as {event, data} until it ends; reconnect if the connection breaks. */
export async function* events(job, signal) {
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
    await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
  }
}

/** Yield the events of one connection. EventSource cannot send the token. */
async function* listen(job, last, signal) {
  const headers = last ? { "Last-Event-ID": String(last) } : {};
  const response = await request(`/jobs/${job}/events`, { signal, headers });
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
