// playground.js connects the parts of the playground: the list of sessions, the conversation, its
// stream, the composer and the inspector.

import { Api, ApiError, failure } from "./api.js";
import { Conversation, Turn, size } from "./chat.js";
import { EventStream } from "./stream.js";
import { Inspector, curl } from "./inspector.js";
import { SkillForm } from "./skillform.js";
import { shortcuts } from "./cards.js";
import { $, el, icon, iconButton, copyText, pause } from "./dom.js";

const { root, workspace, base, chat } = $("app").dataset;
const api = new Api(root, workspace);
const can = { chat: chat === "yes" };
const replayed = 5; // turns whose events are read again; older ones are shown from the list of messages
const randomKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");

let stream = null, summary = null, older = null, seenAtLoad = 0, generation = 0, gone = false, stopping = false;
const composer = $("composer"), text = $("msg"), say = $("say");
const draft = { files: [], skill: null };
let options = { skills: [], secrets: [], agents: [] };

const speak = (words) => { say.textContent = ""; requestAnimationFrame(() => { say.textContent = words; }); };

const conversation = new Conversation({
  col: $("col"), api, can,
  on: {
    say: speak, changed: () => { badge(); list(); },
    asked: (view, node) => {
      badge(); list();
      dispatchEvent(new Event("answered"));
      $("alert").textContent = "The agent " + ({ tool: "calls your tools.", secret: `requests the secret ${view.key_name}.`, connect: `needs access to ${view.server}.` }[view.kind] ?? "needs your approval.");
      node.scrollIntoView({ block: "nearest" });
    },
    again: (turn) => { text.value = turn.user.textContent; composer.requestSubmit(); },
  },
});
const inspector = new Inspector({
  list: $("events"), count: $("event-count"), cursor: $("event-cursor"), ping: $("event-ping"), filter: $("event-filter"), pause: $("event-pause"),
  resume: (seq) => curl({ url: `${base}/sessions/${conversation.session}/events?replay=all`, headers: { "Last-Event-ID": seq } }),
});

// ---- state ----

let phase = { phase: "closed", attempt: 0 };
const looks = { thinking: "info", tool: "info", asked: "warn", reconnecting: "warn", done: "ok", failed: "bad", gone: "bad" };

function state() {
  const turn = conversation.active, last = conversation.turns.at(-1);
  if (gone) return ["gone", "session gone"];
  if (phase.phase === "reconnecting") return ["reconnecting", `reconnecting, attempt ${phase.attempt}, ${Math.max(0, Math.round((Date.now() - phase.since) / 1000))} s`];
  if (turn?.asked) return ["asked", "waiting for " + ({ secret: "a secret", tool: "your tools", connect: "a connection" }[turn.asked] ?? "approval")];
  if (turn && stopping) return ["thinking", "stopping"];
  if (turn?.running) return ["tool", `running ${turn.running}`];
  if (turn) return ["thinking", phase.phase === "connecting" && !turn.id && !turn.text ? "sending" : "thinking"];
  if (!last) return ["", ""];
  return { completed: ["done", "done"], failed: ["failed", "failed"], canceled: ["", "canceled"] }[last.status] ?? ["", ""];
}

function badge() {
  const [kind, words] = state(), node = $("state");
  if (node.textContent !== words) node.textContent = words;
  node.hidden = !words;
  node.className = `badge ${looks[kind] ?? ""}`;
  node.dataset.state = kind;
  const running = Boolean(conversation.active);
  $("stop").hidden = !running || !can.chat;
  $("drop").disabled = phase.phase !== "open";
  $("live").textContent = { open: "live", connecting: "connecting", reconnecting: "reconnecting" }[phase.phase] ?? "closed";
  $("live").className = `badge num ${phase.phase === "open" ? "info" : phase.phase === "reconnecting" ? "warn" : ""}`;
  text.placeholder = running ? "Queue a message for after this turn" : "Message";
}
setInterval(() => { if (phase.phase === "reconnecting") badge(); }, 1000);

function note(words, ...more) {
  $("problem").replaceChildren(...(words ? [icon("warn"), el("div", el("p", words), more.slice(1)), more[0]] : []));
  $("problem").hidden = !words;
}

function problem(err) {
  note(err.message, iconButton("close", "Close", () => note()), err.violations?.length ? el("ul", err.violations.map((v) => el("li", v.message))) : null,
    err.code || err.requestId ? el("p.sm.dim.mono", [err.code, err.requestId].filter(Boolean).join(" · ")) : null);
}

// ---- stream ----

function follow({ cursor = "", first = null, replay = "?replay=all" }) {
  stream?.stop();
  const mine = ++generation, current = (f) => (...args) => { if (mine === generation) f(...args); };
  stream = new EventStream({
    cursor: String(cursor), first, url: () => `${api.base}/sessions/${conversation.session}/events${replay}`,
    on: {
      frame: current(frame), ping: current(() => inspector.pinged()),
      state: current((s) => { phase = s; badge(); if (s.phase === "open" && s.attempt === 0) conversation.active?.check(); }),
      end: current(ended), gone: current(() => vanished(replay)), fail: current(refused),
    },
  }).start();
}

function frame(f, data) {
  inspector.add(f, data);
  if (f.event === "open") {
    if (conversation.session !== data.session_id) adopt(data.session_id);
    return;
  }
  if (f.event === "done" || f.event === "error" && data.code === "session_gone") return;
  const seq = Number(f.id), turn = conversation.turnOf(seq);
  if (!turn || turn.ended) return;
  const live = seq > seenAtLoad;
  if (live && f.event === "text" && !turn.announced) { turn.announced = true; speak("Answer started."); }
  turn.apply(f.event, data, live);
  if (f.event !== "text") badge();
}

/** ended reads what the list says about the turns, and follows the next one if there is one. */
async function ended() {
  const turn = conversation.active;
  await refreshed();
  if (turn?.ended) speak(turn.status === "completed" ? `Answer complete, ${turn.text.trim().split(/\s+/).length} words.` : `The answer ended: ${turn.status}.`);
  stopping = false;
  badge(); list(); meter();
  if (conversation.active) follow({ cursor: stream.cursor });
}

/** meter shows how much of the model's window the newest request had. */
async function meter() {
  const mine = conversation.session, node = $("context");
  node.hidden = true;
  const m = mine && await api.get(`${api.pages}/chat/${mine}/meter`).catch(() => null);
  if (!m || mine !== conversation.session) return;
  const share = (n, of) => `${Math.round(100 * n / Math.max(of, 1))} %`, num = (n) => n.toLocaleString("en-US");
  node.replaceChildren(...[el("meter", { max: m.window, value: m.tokens, "aria-label": "Share of the context window" }),
    `${num(m.tokens)} of ${num(m.window)} tokens, ${share(m.tokens, m.window)}`, m.cached ? `${share(m.cached, m.tokens)} cached` : null,
    m.masked ? "old results masked" : null, m.before ? `compacted from ${num(m.before)} to ${num(m.after)}` : null].filter(Boolean).map((x) => el("span", x)));
  node.hidden = false;
}

/** vanished shows what is left of a session whose events are not available any more. */
async function vanished(replay) {
  await refreshed();
  if (gone) return;
  if (conversation.active && replay) { follow({ replay: "" }); return; }
  gone = Boolean(conversation.active) || !conversation.turns.length;
  badge();
  if (!gone) return;
  note("The events of this session are not available any more, so its stream cannot be resumed.",
    el("button.btn", { onclick: branch }, "Start a new session with this history"));
}

function branch() {
  const history = conversation.turns.map((t) => `User: ${t.user.textContent}\n\nAgent: ${t.text}`).join("\n\n");
  open("");
  text.value = `We talked before:\n\n${history}\n\n`;
  grow(); text.focus();
}

/** refused handles a message that was not accepted, or a stream that may not be read. */
function refused(err) {
  const turn = conversation.turns.at(-1);
  if (turn && !turn.id && !turn.text) {
    turn.user.remove(); turn.node.remove(); conversation.turns.pop();
    restore();
  }
  showProblem(err);
  badge();
}

// ---- session ----

async function refresh() {
  if (!conversation.session) return;
  const mine = conversation.session;
  const page = await api.get(`sessions/${mine}/messages?limit=40&order=desc`);
  if (mine !== conversation.session) return;
  older ??= page.next_cursor;
  conversation.load(page.data.toReversed());
  conversation.finish();
  if (page.data.some((m) => m.erased)) erased();
}

/** erased says that the session cannot go on. What the page still shows is not for another session. */
function erased() {
  gone = true;
  note("This session was erased. It takes no message.", el("button.btn", { onclick: () => open("") }, "Start a new session"));
  badge();
}

/** refreshed is refresh that waits for a server that is away. */
async function refreshed() {
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    try { return await refresh(); } catch (err) {
      if (err.status && err.status < 500) { problem(err); return null; }
      await pause(wait);
    }
  }
}

function adopt(id) {
  conversation.session = id;
  history.pushState(null, "", `${api.pages}/chat/${id}`);
  list();
}

async function open(id, push = true) {
  stream?.stop(); generation++;
  phase = { phase: "closed", attempt: 0 };
  conversation.clear(); conversation.feedback.clear(); inspector.clear(); note();
  conversation.session = id; older = null; gone = false; stopping = false; summary = null; $("alert").textContent = "";
  if (push) history.pushState(null, "", id ? `${api.pages}/chat/${id}` : `${api.pages}/chat`);
  title(); badge(); marks(); meter();
  $("empty").hidden = Boolean(id);
  $("earlier").hidden = true;
  if ($("slist").matches(":popover-open")) $("slist").hidePopover();
  if (!id) { text.focus(); return; }
  try {
    const [page, given] = await Promise.all([api.get(`sessions/${id}/messages?limit=40&order=desc`), api.get(`sessions/${id}/feedback`)]);
    if (conversation.session !== id) return;
    for (const f of given.data) conversation.feedback.set(f.turn_id, f);
    const messages = page.data.toReversed();
    older = page.next_cursor;
    $("earlier").hidden = !older;
    seenAtLoad = Math.max(0, ...messages.map((m) => m.last_seq));
    conversation.load(messages);
    chooseAgent(messages.at(-1));
    if (messages.some((m) => m.erased)) erased();
    const from = conversation.turns.at(-replayed) ?? conversation.turns[0];
    for (const t of conversation.turns) { if (t === from) break; t.settle(); }
    if (!from) { await list(); return; }
    const asked = messages.find((m) => m.turn_id === from.id && m.role === "user");
    follow({ cursor: asked?.first_seq ?? from.firstSeq });
  } catch (err) { showProblem(err); }
  list();
}

/** chooseAgent selects the agent of a message, so that the next message goes to it, unless it was deleted. */
function chooseAgent(m) {
  const versions = [...$("agent").options].filter((o) => o.dataset.name === m?.agent);
  const option = versions.find((o) => o.dataset.version === String(m.agent_version)) ?? versions[0];
  if (option) option.selected = true;
}

async function earlier() {
  const before = conversation.turns[0], page = await api.get(`sessions/${conversation.session}/messages?limit=40&order=desc&cursor=${encodeURIComponent(older)}`);
  conversation.load(page.data.toReversed(), before);
  for (const t of conversation.turns) { if (t === before) break; t.settle(); }
  older = page.next_cursor;
  $("earlier").hidden = !older;
}

function title() {
  const words = summary?.title || (conversation.session ? "Session" : "New session");
  document.querySelector(".head h1").textContent = words;
  document.title = `${words} · Parley`;
}

// ---- list of sessions ----

const words = { waiting: ["is-warn", "Waiting"], thinking: ["is-run", "Running"], completed: ["is-ok", "Done"], failed: ["is-bad", "Failed"], canceled: ["is-off", "Canceled"], not_started: ["is-off", "Empty"] };
const statusOf = (s) => words[s.pending ? "waiting" : s.status !== "completed" || !s.error ? s.status : s.error === "canceled" ? "canceled" : "failed"] ?? words.completed;

function when(at) {
  const date = new Date(at), now = new Date(), age = now - date;
  if (age < 60_000) return "now";
  if (date.toDateString() === now.toDateString()) return date.toTimeString().slice(0, 5);
  return age < 2 * 864e5 ? "Yesterday" : date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

let listed = "";
async function list() {
  let page;
  const q = $("find").value.trim();
  try { page = await api.get(`sessions?limit=30${q ? `&q=${encodeURIComponent(q)}` : ""}`); } catch (err) {
    if (q) $("sessions").replaceChildren(el("li.hint", err.message));
    return;
  }
  const found = page.data.find((s) => s.session_id === conversation.session);
  if (found) { summary = found; title(); }
  if (found?.status === "thinking" && phase.phase === "closed" && !conversation.active && !gone) await catchUp();
  const now = JSON.stringify(page.data.map((s) => [s.session_id, s.title, s.status, s.error, s.pending?.kind, when(s.updated_at)]));
  if (now === listed) return;
  listed = now;
  $("sessions").replaceChildren(...page.data.map((s) => {
    const [look, word] = statusOf(s);
    return el("li", el("a", { href: `${api.pages}/chat/${s.session_id}`, "data-id": s.session_id },
      el("span.clip", { dir: "auto" }, s.title || "Untitled"), el("span.sm", el("span.st." + look, word), el("span.push.num", { title: s.updated_at }, when(s.updated_at)))));
  }));
  if (!page.data.length) $("sessions").append(el("li.pane-h.hint", q ? "No session matches." : "No sessions yet."));
  marks();
}

/** catchUp shows a turn that another client has started. */
async function catchUp() {
  await refreshed();
  if (conversation.active) follow({ cursor: stream?.cursor || conversation.turns[0].firstSeq });
}

function marks() {
  for (const a of $("sessions").querySelectorAll("a")) {
    a.ariaCurrent = a.dataset.id === conversation.session ? "true" : null;
  }
}

// ---- composer ----

let sent = null; // the draft that is being sent

function compose() {
  const body = {};
  if (draft.skill) {
    body.skill = draft.skill.skill.name;
    const input = draft.skill.input();
    if (input !== undefined) body.input = input;
  } else body.command = text.value;
  if (conversation.session) body.session_id = conversation.session;
  for (const [name, member] of [["schema", "response_schema"], ["tools", "tools"]]) {
    const json = $(name).value.trim();
    try { if (json) body[member] = JSON.parse(json); } catch { throw new ApiError(0, { error: { message: "This is not JSON.", violations: [{ param: "/" + member, message: "This is not JSON." }] } }); }
  }
  const secrets = [...$("secrets").querySelectorAll("input:checked")].map((i) => i.value);
  if (secrets.length) body.secret_input = secrets;
  if (draft.files.length) body.attachments = draft.files.filter((f) => f.id).map((f) => ({ file_id: f.id }));
  const user = $("user").value.trim();
  if (user) body.user = user;
  const agent = $("agent")?.selectedOptions[0];
  if (agent?.dataset.agent) body.agent = agent.dataset.agent;
  if (agent?.dataset.version) body.agent_version = /^\d+$/.test(agent.dataset.version) ? Number(agent.dataset.version) : agent.dataset.version;
  return body;
}

function reset() {
  sent = { text: text.value, files: draft.files, skill: draft.skill };
  text.value = ""; draft.files = []; draft.skill = null;
  $("p-tools").hidden = $("tools-err").hidden = true;
  panels(); grow();
}

function restore() {
  if (!sent) return;
  if (!text.value) text.value = sent.text;
  draft.files = sent.files; draft.skill = sent.skill; sent = null;
  panels(); grow();
}

function showProblem(err) {
  let rest = err.violations ?? [];
  for (const [name, param] of [["schema", "/response_schema"], ["tools", "/tools"]]) {
    const mine = rest.filter((v) => v.param.startsWith(param)), node = $(name + "-err");
    node.textContent = mine.map((v) => v.message).join(" ") || (name === "schema" && err.code === "INVALID_RESPONSE_SCHEMA" ? err.message : "");
    node.hidden = !node.textContent;
    if (node.hidden) continue;
    $("p-" + name).hidden = false;
    rest = rest.filter((v) => !mine.includes(v));
    if (!rest.length) { $(name).focus(); return; }
  }
  if (draft.skill && rest.length) {
    rest = draft.skill.show(rest);
    if (!rest.length) { speak(err.message); return; }
  }
  problem(Object.assign(new Error(err.message), { code: err.code, requestId: err.requestId, violations: rest }));
}

async function send() {
  if (!can.chat || (!draft.skill && !text.value.trim())) return;
  if (draft.files.some((f) => !f.id)) { speak("Wait for the uploads."); return; }
  let body;
  try { body = compose(); } catch (err) { showProblem(err); return; }
  note();
  const headers = { "Content-Type": "application/json", "Idempotency-Key": randomKey() };
  const label = draft.skill ? `/${draft.skill.skill.name}${body.input ? ` (${Object.keys(body.input).join(", ")})` : ""}` : "";
  const begin = { text: text.value, label, files: draft.files.map((f) => f.name), sent: performance.now() };
  $("empty").hidden = true;
  if (conversation.isReading) { await queue(body, headers, begin); return; }
  const blocking = $("mode").value === "blocking";
  reset();
  conversation.begin(new Turn(conversation, begin));
  $("log").scrollTop = 0;
  if (blocking) { await block({ ...body, stream: false }, headers); return; }
  gone = false;
  follow({ cursor: "", first: { url: `${api.base}/messages`, body: JSON.stringify(body), headers } });
}

/** queue stores a message behind the turn that runs. Its own stream is not read. */
async function queue(body, headers, begin) {
  const abort = new AbortController();
  try {
    const res = await fetch(`${api.base}/messages`, { method: "POST", headers: { ...headers, Accept: "text/event-stream" }, body: JSON.stringify({ ...body, multitask_strategy: "enqueue" }), signal: abort.signal });
    if (!res.ok) throw await failure(res);
    abort.abort();
    reset();
    conversation.begin(new Turn(conversation, begin));
    await refresh();
    // The turn before may have ended while this message was stored.
    if (phase.phase === "closed" && conversation.active) follow({ cursor: stream?.cursor ?? "" });
  } catch (err) { showProblem(err); }
  badge();
}

async function block(body, headers) {
  phase = { phase: "connecting", attempt: 0 };
  badge();
  try {
    const answer = await api.post("messages", body, headers);
    phase = { phase: "closed", attempt: 0 };
    if (answer.session_id !== conversation.session) adopt(answer.session_id);
    await refresh();
    if (conversation.active) follow({ cursor: conversation.active.firstSeq });
  } catch (err) { phase = { phase: "closed", attempt: 0 }; refused(err); }
  badge(); list();
}

async function cancel() {
  if (!conversation.session) return;
  stopping = true;
  badge();
  try {
    const { data } = await api.post(`sessions/${conversation.session}/cancel`);
    if (data.runner_halt_deferred) speak("Stopping. The running command ends soon.");
    if (!data.canceled) await refresh();
  } catch (err) { stopping = false; problem(err); }
  badge();
}

async function attach(files) {
  for (const file of files) {
    const entry = { name: file.name, size: file.size, id: "", problem: "" };
    draft.files.push(entry);
    panels();
    try {
      const { data } = await api.post("files", { filename: file.name, mime: file.type || "application/octet-stream", size: file.size }, { "Idempotency-Key": randomKey() });
      const url = new URL(data.upload.url);
      const res = await fetch(url.pathname + url.search, { method: data.upload.method, headers: data.upload.headers, body: file });
      if (!res.ok) throw await failure(res);
      entry.id = data.file_id;
    } catch (err) { draft.files = draft.files.filter((f) => f !== entry); problem(err); }
    panels();
  }
}

function panels() {
  $("p-files").replaceChildren(...draft.files.map((f) => el("span.file", icon("file"), el("span.clip", { dir: "auto" }, f.name), el("span.sm.dim", f.id ? size(f.size) : "uploading"),
    iconButton("close", `Remove ${f.name}`, () => { draft.files = draft.files.filter((x) => x !== f); panels(); }))));
  $("p-files").hidden = draft.files.length === 0;
  $("p-skill").replaceChildren(...(draft.skill ? [draft.skill.node] : []));
  $("p-skill").hidden = !draft.skill;
  text.hidden = Boolean(draft.skill);
  const chosen = $("secrets").querySelectorAll("input:checked").length;
  $("secret-count").textContent = chosen ? `${chosen} secret${chosen > 1 ? "s" : ""}` : "Secrets";
  let tools = 0;
  try { tools = JSON.parse($("tools").value).length; } catch { /* none yet */ }
  $("tools-count").textContent = tools || "";
}

function grow() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight, 280)}px`;
}

function pick(skill) {
  draft.skill = new SkillForm(skill, () => { draft.skill = null; panels(); text.focus(); });
  $("skills").hidePopover();
  text.value = "";
  panels();
  draft.skill.node.querySelector("input, select, textarea")?.focus();
}

async function load() {
  try { options = await api.get(`${api.pages}/chat/options`); } catch { return; }
  $("skill-list").replaceChildren(...options.skills.map((s) => el("li", el("button.btn.quiet", { onclick: () => pick(s) }, el("b.mono", "/" + s.name), el("span.sm.dim.clip", s.description)))));
  $("skill-empty").hidden = options.skills.length > 0;
  $("secrets").replaceChildren(...options.secrets.map((name) => el("label.check", el("input", { type: "checkbox", value: name, onchange: panels }), el("span.mono", name))));
  $("secret-empty").hidden = options.secrets.length > 0;
  const wanted = new URLSearchParams(location.search).get("skill"), skill = options.skills.find((s) => s.name === wanted);
  if (skill && !conversation.session) pick(skill);
}

// ---- events of the page ----

composer.onsubmit = (e) => { e.preventDefault(); send(); };
text.oninput = grow;
$("tools").oninput = panels;
composer.onkeydown = (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing && (e.target === text || draft.skill && e.target.matches("input"))) { e.preventDefault(); composer.requestSubmit(); }
  else if (e.key === "/" && e.target === text && text.value === "") { e.preventDefault(); $("skills").showPopover(); $("skill-list").querySelector("button")?.focus(); }
};
$("skill-list").onkeydown = (e) => {
  const all = [...$("skill-list").querySelectorAll("button")], at = all.indexOf(document.activeElement);
  if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); all.at((at + (e.key === "ArrowDown" ? 1 : -1)) % all.length)?.focus(); }
};
$("stop").onclick = cancel;
$("drop").onclick = () => stream?.drop();
$("attach").onclick = () => $("file").click();
$("file").onchange = () => { attach([...$("file").files]); $("file").value = ""; };
for (const name of ["schema", "tools", "secret", "user"]) {
  $("show-" + name).onclick = (e) => {
    const panel = $("p-" + name);
    panel.hidden = !panel.hidden;
    e.currentTarget.ariaExpanded = !panel.hidden;
    panel.querySelector("input, textarea")?.focus();
  };
}
$("curl").onclick = async (e) => {
  try {
    const body = compose(), ok = await copyText(curl({ url: `${base}/messages`, body }), e.currentTarget);
    speak(ok ? "Copied the message as a curl command." : "Copying failed.");
  } catch (err) { showProblem(err); }
};
$("earlier").onclick = () => earlier().catch(problem);
$("new").onclick = () => open("");
$("sessions").onclick = (e) => {
  const a = e.target.closest("a");
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  open(a.dataset.id);
};
let finding = 0;
$("find").oninput = () => { clearTimeout(finding); finding = setTimeout(list, 250); };
const fromURL = () => decodeURIComponent(location.pathname.slice(`${api.pages}/chat`.length + 1));
addEventListener("popstate", () => open(fromURL(), false));
$("log").onscroll = () => { $("jump").hidden = $("log").scrollTop > -120; };
$("jump").onclick = () => { $("log").scrollTop = 0; };
document.addEventListener("visibilitychange", () => { if (!document.hidden) { list(); stream?.retry(); } });
setInterval(() => { if (!document.hidden) { list(); conversation.active?.check(); } }, 5000);

shortcuts();
load();
panels();
open(fromURL(), false);
