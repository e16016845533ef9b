// stream.js reads event streams with fetch: EventSource cannot send a message, and its own events
// open and error collide with ours.

import { ApiError, failure } from "./api.js";

/**
 * createParser returns a function that takes the next piece of a stream's text and calls
 * on.frame({event, data, id}), on.retry(milliseconds) and on.comment(). It needs no browser.
 */
export function createParser(on) {
  let rest = "", first = true, afterCR = false;
  let event = "", data = [], id = "", seen = false;
  const line = (text) => {
    if (text === "") {
      if (seen) on.frame({ event: event || "message", data: data.join("\n"), id });
      event = ""; data = []; seen = false;
      return;
    }
    const colon = text.indexOf(":");
    if (colon === 0) { on.comment?.(); return; }
    const field = colon < 0 ? text : text.slice(0, colon);
    let value = colon < 0 ? "" : text.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") { data.push(value); seen = true; }
    else if (field === "event") event = value;
    else if (field === "id" && !value.includes("\0")) id = value;
    else if (field === "retry" && /^\d+$/.test(value)) on.retry?.(Number(value));
  };
  return (text) => {
    if (first && text !== "") { first = false; if (text.startsWith("\uFEFF")) text = text.slice(1); }
    if (afterCR && text.startsWith("\n")) text = text.slice(1);
    if (text !== "") afterCR = text.endsWith("\r");
    const lines = (rest + text).split(/\r\n|\n|\r/);
    rest = lines.pop();
    lines.forEach(line);
  };
}

const idle = 45_000; // three keep-alives of 15 s: a connection that is silent for longer is dead
const longest = 30_000; // between two attempts

/**
 * EventStream follows a session and reconnects with its cursor until the turn has ended.
 * It calls on.frame(frame), on.state({phase, attempt, since}) and at last one of on.end(),
 * on.gone() and on.fail(error). Phases: connecting, open, reconnecting, closed.
 */
export class EventStream {
  #on; #url; #first; #cursor; #retry = 2000; #attempt = 0; #since = 0; #abort = null; #stopped = false; #wake = null; #quick = false;

  /** url(cursor) is the address that resumes; first, if given, is sent until its first frame has arrived. */
  constructor({ url, cursor = "", first = null, on }) {
    this.#on = on; this.#url = url; this.#cursor = cursor; this.#first = first;
  }

  get cursor() { return this.#cursor; }

  start() { this.#run(); return this; }

  /** stop closes the stream; the turn continues. */
  stop() { this.#stopped = true; this.#abort?.abort(); this.#wake?.(); }

  /** drop closes the connection as a lost network does; the stream resumes at its cursor. */
  drop() { this.#abort?.abort(); }

  /** retry ends the pause before the next attempt. */
  retry() { this.#quick = true; this.#wake?.(); }

  #state(phase) { this.#on.state?.({ phase, attempt: this.#attempt, since: this.#since, cursor: this.#cursor }); }

  async #run() {
    while (!this.#stopped) {
      this.#state(this.#attempt ? "reconnecting" : "connecting");
      let outcome, wait = 0;
      try { outcome = await this.#connect(); } catch (err) {
        if (err instanceof ApiError && err.status && err.status < 500 && ![408, 425, 429].includes(err.status)) {
          outcome = err.status === 410 ? "gone" : err;
        } else wait = (err.retryAfter ?? 0) * 1000;
      }
      if (this.#stopped) break;
      if (outcome) {
        this.#stopped = true;
        this.#state("closed");
        if (outcome === "end") this.#on.end?.();
        else if (outcome === "gone") this.#on.gone?.();
        else this.#on.fail?.(outcome);
        return;
      }
      if (!this.#attempt++) this.#since = Date.now();
      this.#state("reconnecting");
      await this.#pause(Math.max(wait, Math.min(longest, this.#retry * 2 ** (this.#attempt - 1)) * (0.75 + Math.random() / 2)));
    }
    this.#state("closed");
  }

  #pause(ms) {
    return new Promise((done) => {
      const wake = () => { clearTimeout(timer); removeEventListener("online", wake); this.#wake = null; this.#quick = false; done(); };
      const timer = setTimeout(wake, ms);
      this.#wake = wake;
      addEventListener("online", wake);
      if (this.#quick || this.#stopped) wake();
    });
  }

  async #connect() {
    const abort = this.#abort = new AbortController();
    let timer;
    const alive = () => { clearTimeout(timer); timer = setTimeout(() => abort.abort(), idle); };
    alive();
    try {
      const headers = { Accept: "text/event-stream" };
      if (this.#cursor !== "") headers["Last-Event-ID"] = this.#cursor;
      const first = this.#first;
      const res = first
        ? await fetch(first.url, { method: "POST", body: first.body, headers: { ...headers, ...first.headers }, signal: abort.signal, cache: "no-store" })
        : await fetch(this.#url(), { headers, signal: abort.signal, cache: "no-store" });
      if (res.status === 204) return "end";
      if (!res.ok) throw await failure(res);
      if (!res.headers.get("Content-Type")?.startsWith("text/event-stream")) throw new ApiError(0);
      return await this.#read(res.body.getReader(), alive);
    } finally { clearTimeout(timer); abort.abort(); }
  }

  async #read(reader, alive) {
    let outcome = null, frames = 0;
    const decoder = new TextDecoder();
    const parse = createParser({
      retry: (ms) => { if (ms < longest) this.#retry = ms; }, // that of done is for an EventSource
      comment: () => this.#on.ping?.(),
      frame: (frame) => {
        if (outcome === "end") return;
        if (!frames++) { this.#attempt = 0; this.#since = 0; this.#first = null; this.#cursor = frame.id; this.#state("open"); }
        this.#cursor = frame.id;
        const body = JSON.parse(frame.data);
        if (frame.event === "error" && body.code === "session_gone") outcome = "gone";
        else if (frame.event === "done") outcome ??= "end";
        this.#on.frame(frame, body);
      },
    });
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return outcome;
      alive();
      parse(decoder.decode(value, { stream: true }));
      if (outcome === "end") return outcome;
    }
  }
}
