// inspector.js lists the frames of the stream as they arrived, with a filter and commands to copy.

import { el, code, copyButton } from "./dom.js";

const kept = 2000; // rows

/** quote makes a word of a POSIX shell. */
export const quote = (text) => /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** curl writes a command that anyone with a key can run. */
export function curl({ url, headers = {}, body, stream = true }) {
  const lines = [`curl ${stream ? "-N " : ""}${quote(url)}`, `-H "Authorization: Bearer $PARLEY_API_KEY"`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)];
  if (body) lines.push(`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** pretty splits JSON into coloured pieces. */
function pretty(data) {
  const text = JSON.stringify(data, null, 2), parts = [];
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  let at = 0;
  for (const m of text.matchAll(token)) {
    parts.push(text.slice(at, m.index), m[2] ? el("span.k", m[1]) : m[1] ? m[1] : el("span.v", m[0]), m[2] ?? "");
    at = m.index + m[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

/** Inspector fills the pane of events. resumeURL(seq) is the public address that resumes there. */
export class Inspector {
  #rows = []; #paused = []; #pausing = false; #filter = ""; #pinged = 0;

  constructor({ list, count, cursor, ping, filter, pause, resume }) {
    Object.assign(this, { list, count, cursor, ping, resume });
    filter.oninput = () => { this.#filter = filter.value.trim().toLowerCase(); for (const r of this.#rows) this.#show(r); };
    pause.onclick = () => {
      this.#pausing = !this.#pausing;
      pause.ariaPressed = this.#pausing;
      pause.ariaLabel = this.#pausing ? "Continue" : "Pause";
      if (!this.#pausing) for (const f of this.#paused.splice(0)) this.#row(f);
    };
    setInterval(() => this.#age(), 1000);
  }

  clear() { this.#rows = []; this.#paused = []; this.list.replaceChildren(); this.#counts(); }

  add(frame, data) {
    this.pinged();
    const entry = { seq: frame.id, kind: frame.event, line: frame.data, data };
    if (this.#pausing) { this.#paused.push(entry); this.#counts(); } else this.#row(entry);
  }

  pinged() { this.#pinged = performance.now(); this.#age(); }

  #age() {
    const text = this.#pinged ? `data ${Math.round((performance.now() - this.#pinged) / 1000)} s ago` : "";
    if (this.ping.textContent !== text) this.ping.textContent = text;
  }

  #row(entry) {
    const atEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 40;
    const look = entry.kind === "error" ? ".bad" : entry.kind.endsWith("_required") ? ".warn" : "";
    const node = el("details.ev", el("summary", el("span.seq", entry.seq), el("span.name.clip" + look, entry.kind), el("span.data", entry.line.slice(0, 200))));
    node.ontoggle = () => {
      if (!node.open || node.children.length > 1) return;
      const note = entry.kind === "input_required" && entry.data.kind === "secret" ? el("p.hint", "The value that you provide is not recorded in any event.") : null;
      node.append(el("div.ev-b", code(`Data of event ${entry.seq}`, pretty(entry.data)), note,
        el("div.row.wrap", copyButton("Copy", () => JSON.stringify(entry.data, null, 2), "button.btn.small"),
          copyButton("Copy as curl from here", () => this.resume(entry.seq), "button.btn.small"))));
    };
    const row = { node, text: `${entry.seq} ${entry.kind} ${entry.line}`.toLowerCase() };
    this.#show(row);
    this.#rows.push(row);
    this.list.append(node);
    if (this.#rows.length > kept) this.#rows.shift().node.remove();
    this.last = entry.seq;
    this.#counts();
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }

  #show(row) { row.node.hidden = this.#filter !== "" && !row.text.includes(this.#filter); }

  #counts() {
    this.count.textContent = `${this.#rows.length} event${this.#rows.length === 1 ? "" : "s"}${this.#paused.length ? `, ${this.#paused.length} held` : ""}`;
    this.cursor.textContent = this.last ? `cursor ${this.last}` : "";
  }
}
