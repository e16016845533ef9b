// chat.js shows a conversation: the messages of the list, and the events of the log as they arrive.

import { el, icon, iconButton, copyButton, copyText, code, pause, spinner } from "./dom.js";
import { Prose, safeURL } from "./markdown.js";
import { card } from "./cards.js";
import { toolCard } from "./toolcard.js";

const foldedLines = 4;
const number = new Intl.NumberFormat("en-US");
export const seconds = (ms) => ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")} min`;
export const size = (n) => n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1048576).toFixed(1)} MiB`;

/** ToolRow is one call: a row that opens. */
class ToolRow {
  #state = el("span.badge.info", spinner(), "running"); #body = el("div.tool-b", el("p.dim", "No output yet."));

  constructor(tool, summary, live) {
    this.tool = tool;
    this.began = live ? performance.now() : 0;
    this.node = el("details.tool", el("summary", icon("chevron"), el("b", tool), el("span.clip", { dir: "auto" }, summary), this.#state), this.#body);
    this.summary = summary;
  }

  finish(ok, output, truncated) {
    this.done = true;
    const took = this.began ? seconds(performance.now() - this.began) : "";
    const state = el(ok ? "span.badge.ok" : "span.badge.bad", ok ? took || "done" : `failed${took && " " + took}`);
    this.#state.replaceWith(state);
    this.#state = state;
    this.#body.replaceChildren(el("p.label.dim", "Call"), el("pre.code", `${this.tool}: ${this.summary}`));
    if (output === undefined) { this.#body.append(el("p.dim", "The output is not kept any more.")); return; }
    const lines = output.split("\n"), pre = code(`Output of ${this.tool}`, lines.slice(0, foldedLines).join("\n"));
    this.#body.append(el("div.row", el("p.label.dim", "Output"), truncated ? el("span.badge.push", "cut at 4000 characters") : null), pre);
    const row = el("div.row", copyButton("Copy", () => output));
    if (lines.length > foldedLines) {
      row.prepend(el("button.btn.small", { onclick: (e) => { pre.textContent = output; e.currentTarget.remove(); } }, `Show all ${lines.length} lines`));
    }
    this.#body.append(row);
  }

  /** stop ends a row whose turn has ended without its result. */
  stop() { if (!this.done) this.finish(false, undefined); }
}

/** fileCard shows a produced file. */
function fileCard(file) {
  const url = safeURL(file.download_url);
  const text = [icon("file"), el("span.clip", { dir: "auto" }, file.filename), el("span.sm.dim", `${size(file.size)} · ${file.mime}`)];
  return url ? el("a.file", { href: url, title: "Download. The link is valid for 7 days." }, text) : el("span.file", text);
}

/** Turn is one message and its answer. */
export class Turn {
  #prose = null; #thought = null; #parts = []; #tools = new Map(); #asks = new Map(); #use = null; #seen = false; #sent = 0; #first = 0; #error = null; #plain = false;

  /** text is the user's message; sent is when, for a turn that this page started. */
  constructor(conversation, { text, label, files = [], sent = 0 }) {
    this.in = conversation;
    this.#sent = sent;
    this.id = ""; this.firstSeq = 0; this.lastSeq = 0; this.ended = false;
    this.user = el("div.msg-u", { dir: "auto" }, label ? el("span.mono", label) : text, files.length ? el("div.refs", files.map((f) => el("span.file", icon("file"), el("span.clip", f)))) : null);
    this.body = el("div.msg-a");
    this.foot = el("div.msg-a");
    this.wait = el("p.dim", el("span.caret", { "aria-hidden": "true" }), el("span.vh", "Waiting for the answer"));
    this.body.append(this.wait);
    this.node = el("article.msg-a", { "aria-label": "Answer in progress" }, this.body, this.foot);
    Object.defineProperty(this.node, "source", { get: () => this.text });
  }

  /** text is the whole answer so far, as the database has it. */
  get text() { return this.#parts.map((p) => p.source).join(""); }

  /** isRunning is true until the list of messages has the end of the turn. */
  get isRunning() { return !this.id || this.status === "in_progress"; }

  get running() { return [...this.#tools.values()].findLast((t) => !t.done)?.tool; }

  /** asked is the kind of the open request; undefined: there is none. */
  get asked() { return [...this.#asks.values()].find((c) => c.isConnected && c.matches(".ask"))?.dataset.kind; }

  #add(node) {
    this.wait.remove();
    this.body.append(node);
  }

  #settle() { this.#prose?.finish(); this.#prose = null; }

  /** apply shows one event. live is false for events of the past. */
  apply(kind, data, live) {
    this.#seen = true;
    if (kind !== "text" || !this.#prose) this.check(); // the turn continues: its requests are answered
    if (kind !== "reasoning") this.#thought = null;
    switch (kind) {
      case "reasoning":
        if (!this.#thought) {
          this.#settle();
          this.#thought = el("div.tool-b", { dir: "auto" });
          this.#add(el("details.tool", el("summary", icon("chevron"), el("b", "Reasoning")), this.#thought));
        }
        this.#thought.append(data.text);
        break;
      case "text":
        if (!this.#prose) {
          this.#prose = new Prose();
          this.#prose.caret.hidden = !this.isRunning; // its events are replayed
          this.#parts.push(this.#prose);
          this.#add(this.#prose.node);
        }
        if (live && !this.#first) this.#first = performance.now();
        this.#prose.append(data.text);
        break;
      case "tool_use": {
        this.#settle();
        const row = new ToolRow(data.tool, data.summary, live);
        this.#tools.set(data.tool_use_id ?? this.#tools.size, row);
        this.#add(row.node);
        break;
      }
      case "tool_result":
        for (const node of this.#asks.values()) node.answered?.(data.tool_use_id);
        (this.#tools.get(data.tool_use_id) ?? [...this.#tools.values()].find((t) => !t.done && t.tool === data.tool))?.finish(data.ok, data.output, data.truncated);
        break;
      case "input_required": case "connect_required": case "tool_required": this.#settle(); this.#ask(data, live); break;
      case "usage": if (this.isRunning) this.#usage(data); break; // setMessage has shown that of an ended turn
      case "structured": this.#structured(data.result); break;
      case "attachment": this.#add(el("div.refs", { role: "group", "aria-label": "Files" }, data.attachments.map(fileCard))); break;
      case "attachment_rejected": this.#rejected(data.attachments); break;
      case "error": this.#fail(data.code, data.message, data.recoverable); break;
    }
  }

  /** ask shows the card of a question. Calls of the caller's tools are shown as they came: their results are in the log. */
  async #ask(data, live) {
    const ctx = { api: this.in.api, can: this.in.can, say: this.in.on.say, changed: () => this.in.on.changed() };
    const place = data.calls ? toolCard(data, ctx) : el("p.asked", spinner(), el("span", "Reading the request …"));
    this.#add(place);
    this.#asks.set(data.approval_id, place);
    if (data.calls) { if (live) this.in.on.asked(data, place); return; }
    for (let tries = 0; ; tries++) {
      try {
        const view = await this.in.api.get(`${this.in.api.pages}/approvals/${data.approval_id}/card`);
        const node = card(view, ctx);
        this.#asks.set(data.approval_id, node);
        place.replaceWith(node);
        if (view.status === "pending") this.in.on.asked(view, node);
        return;
      } catch (err) {
        if (tries > 5 || err.status === 404) { place.replaceChildren(icon("warn", "warn"), el("span", `This request cannot be shown: ${err.message}`)); return; }
        await pause(1000 * (tries + 1));
      }
    }
  }

  /** check asks whether an open request was answered elsewhere. */
  check() { for (const node of this.#asks.values()) if (node.isConnected) node.refresh?.(true); }

  #usage(u) {
    const parts = [`${number.format(u.input_tokens)} in`, `${number.format(u.output_tokens)} out`, u.cost_usd === null || u.cost_usd === undefined ? null : `$${u.cost_usd.toFixed(4)}`,
      this.#first && this.#sent ? `${seconds(this.#first - this.#sent)} first token` : null, u.model, u.truncated ? "cut at the token limit" : null];
    const line = el("div.use", parts.filter(Boolean).map((p) => el("span", p)));
    if (this.#use) this.#use.replaceWith(line); else this.foot.prepend(line);
    this.#use = line;
  }

  #structured(result) {
    const json = JSON.stringify(result, null, 2);
    this.#settle();
    this.#add(el("div.stack.tight", el("div.row", el("p.label.dim", "Structured result"), el("span.push", copyButton("Copy", () => json))),
      code("Structured result", json)));
  }

  #rejected(list) {
    this.#add(el("div.note.warn", icon("warn"), el("div", list.map((f) => el("p", { dir: "auto" }, `${f.filename} was not used: ${f.reason}`)))));
  }

  #fail(code, message, recoverable) {
    this.#settle();
    this.#error?.remove();
    this.#stop();
    this.#error = code === "canceled"
      ? el("p.asked", icon("stop"), el("span", message || "You stopped this answer."))
      : el("div.note.bad", { role: "alert" }, icon("warn"), el("div", el("p", message || "The answer failed."), el("p.sm.dim.mono", code)),
        recoverable ? el("button.btn", { onclick: () => this.in.on.again(this) }, "Send again") : null);
    this.#add(this.#error);
  }

  /** stop ends the rows and cards of calls without a result. */
  #stop() {
    for (const t of this.#tools.values()) t.stop();
    for (const node of this.#asks.values()) node.close?.();
  }

  /** setMessage takes the answer of the list of messages. The frame of an ended turn does not wait for its events. */
  setMessage(m) {
    this.message = m;
    this.id = m.turn_id; this.firstSeq = m.first_seq; this.lastSeq = m.last_seq; this.status = m.status;
    this.node.id = "turn-" + m.turn_id;
    if (this.isRunning) return;
    this.wait.remove();
    this.node.ariaLabel = m.status === "completed" ? "Answer" : `Answer, ${m.status}`;
    if (m.usage && !this.#use) this.#usage(m.usage);
    this.#ending(m);
  }

  /** settle completes an ended turn whose events have been read, or are not there (any more). */
  settle() {
    const m = this.message;
    if (this.isRunning) return;
    this.ended = true;
    this.#settle();
    this.check();
    if (!this.#seen && !this.#plain) this.#fromList(m);
    else if (m.content !== null && m.content !== this.text) this.#mend(m.content);
    this.#stop();
    if (m.error && !this.#error) this.#fail(m.error, "", false);
  }

  /** fromList shows an answer whose events are not there (any more). */
  #fromList(m) {
    this.#plain = true;
    for (const c of m.tool_calls ?? []) {
      const row = new ToolRow(c.tool, c.summary, false);
      row.finish(c.ok !== false, undefined, c.truncated);
      this.#add(row.node);
    }
    if (m.content) { this.apply("text", { text: m.content }, false); this.#settle(); }
    if (m.structured_result !== undefined && m.structured_result !== null) this.#structured(m.structured_result);
    if (m.attachments?.length) this.apply("attachment", m, false);
  }

  /** mend replaces the text by the database's if a frame was lost. */
  #mend(content) {
    for (const p of this.#parts) p.node.remove();
    this.#parts = [];
    this.apply("text", { text: content }, false);
    this.#settle();
  }

  #ending(m) {
    if (m.references?.length && !this.foot.querySelector(".refs")) {
      this.foot.prepend(el("div.refs", { role: "group", "aria-label": "Documents that the answer read" },
        m.references.map((r) => el("span.file", { title: r.source }, icon("book"), el("span.clip", { dir: "auto" }, r.path)))));
    }
    this.#use ??= this.foot.appendChild(el("div.use"));
    if (this.#use.querySelector(".push")) return;
    const text = () => m.output ?? this.text;
    this.#use.append(el("span.push", this.in.can.chat ? this.#feedback() : null, iconButton("copy", "Copy answer", () => copyText(text(), this.node))));
  }

  #feedback() {
    const rate = async (rating, note) => {
      try {
        await this.in.api.post(`sessions/${this.in.session}/turns/${this.id}/feedback`, note ? { rating, note } : { rating });
        for (const [b, r] of [[good, "good"], [bad, "bad"]]) b.ariaPressed = r === rating;
        this.in.on.say(note ? "Note stored." : "Feedback stored.");
      } catch (err) { this.in.on.say(err.message); }
    };
    const ask = (rating) => async () => {
      await rate(rating);
      this.foot.querySelector("form")?.remove();
      const field = el("input.in", { name: "note", maxlength: 2000, placeholder: "Add a note", "aria-label": "Note on this answer" });
      const form = el("form.row", { onsubmit: async (e) => { e.preventDefault(); if (field.value.trim()) await rate(rating, field.value.trim()); form.remove(); } }, field, el("button.btn", { type: "submit" }, "Store note"));
      this.foot.append(form);
      field.focus();
    };
    const good = iconButton("good", "Good answer", ask("good")), bad = iconButton("poor", "Bad answer", ask("bad"));
    for (const b of [good, bad]) b.ariaPressed = "false";
    const given = this.in.feedback.get(this.id);
    if (given) (given.rating === "good" ? good : bad).ariaPressed = "true";
    return [good, bad];
  }
}

/** Conversation is the list of turns in a column. */
export class Conversation {
  constructor({ col, api, can, on }) {
    Object.assign(this, { col, api, can, on, session: "", turns: [], feedback: new Map() });
  }

  clear() { this.turns = []; this.col.replaceChildren(); }

  /** begin adds a turn at the end, or before another one. */
  begin(turn, before) {
    const at = before ? this.turns.indexOf(before) : this.turns.length;
    this.turns.splice(at, 0, turn);
    const next = before?.user ?? null;
    this.col.insertBefore(turn.user, next);
    this.col.insertBefore(turn.node, next);
    return turn;
  }

  /** load merges a page of messages, oldest first, into the turns. */
  load(messages, before) {
    const asked = new Map(messages.filter((m) => m.role === "user").map((m) => [m.turn_id, m]));
    for (const m of messages) {
      if (m.role !== "assistant") continue;
      let turn = this.turns.find((t) => t.id === m.turn_id) ?? (before ? null : this.turns.find((t) => !t.id));
      if (!turn) {
        const u = asked.get(m.turn_id);
        turn = this.begin(new Turn(this, { text: u?.content ?? (m.erased ? "This message was erased." : ""), label: u?.label ?? "", files: (u?.attachments ?? []).map((f) => f.filename) }), before);
      }
      turn.setMessage(m);
    }
  }

  /** finish settles every turn with what the list knows. */
  finish() { for (const t of this.turns) if (t.message) t.settle(); }

  /** turnOf finds the turn of an event: turns run one after the other. */
  turnOf(seq) {
    return this.turns.find((t) => !t.isRunning && seq <= t.lastSeq) ?? this.active;
  }

  /** active is the first turn without an end. A replay has no frame between two turns, so only the list of messages shows ends. */
  get active() { return this.turns.find((t) => t.isRunning); }

  /** isReading is true while a turn runs, or while events of ended turns are replayed. */
  get isReading() { return this.turns.some((t) => !t.ended); }
}
