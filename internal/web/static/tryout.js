// tryout.js sends each message to two versions of an agent and shows their answers beside each other.

import { Api } from "./api.js";
import { Conversation, Turn } from "./chat.js";
import { EventStream } from "./stream.js";
import { shortcuts } from "./cards.js";
import { $, el, icon } from "./dom.js";

const { root, workspace, agent } = $("app").dataset;
const api = new Api(root, workspace);
const looks = { completed: "ok", failed: "bad", canceled: "" };

const speak = (words) => { $("say").textContent = words; };
function problem(err) {
  $("problem").replaceChildren(...(err ? [icon("warn"), el("div", el("p", err.message))] : []));
  $("problem").hidden = !err;
}

/** Side is the conversation with one version. */
class Side {
  #stream = null;

  constructor(node) {
    this.node = node;
    this.select = node.querySelector("select"); this.badge = node.querySelector(".badge"); this.link = node.querySelector("a");
    this.none = node.querySelector("[data-none]");
    this.conversation = new Conversation({
      col: node.querySelector(".msgs"), api, can: { chat: true },
      on: { say: speak, changed: () => this.show(), asked: (_, card) => { this.show(); card.scrollIntoView({ block: "nearest" }); }, again: (turn) => { $("msg").value = turn.user.textContent; $("msg").focus(); } },
    });
    this.select.onchange = () => this.reset();
  }

  get name() { return this.select.selectedOptions[0].textContent; }

  reset() {
    this.#stream?.stop();
    this.conversation.clear();
    this.conversation.session = "";
    this.show();
  }

  show() {
    const turn = this.conversation.active, last = this.conversation.turns.at(-1);
    const [look, words] = turn?.asked ? ["warn", "waiting for an answer"] : turn ? ["info", turn.running ? `running ${turn.running}` : "thinking"] : last ? [looks[last.status] ?? "", last.status ?? ""] : ["", ""];
    this.badge.className = `badge ${look}`;
    if (this.badge.textContent !== words) this.badge.textContent = words;
    this.badge.hidden = !words;
    this.none.hidden = Boolean(last);
    this.link.hidden = !this.conversation.session;
    this.link.href = `${api.pages}/sessions/${this.conversation.session}`;
    $("stop").hidden = !sides.some((s) => s.conversation.active);
    $("send").disabled = !$("stop").hidden;
    $("again").hidden = !sides.some((s) => s.conversation.turns.length);
  }

  send(text) {
    const c = this.conversation, body = { command: text }, version = this.select.value;
    if (c.session) body.session_id = c.session;
    if (agent) body.agent = agent;
    if (version) body.agent_version = version === "draft" ? version : Number(version);
    const turn = c.begin(new Turn(c, { text, sent: performance.now() }));
    this.#stream = new EventStream({
      url: () => `${api.base}/sessions/${c.session}/events?replay=all`,
      first: { url: `${api.base}/messages`, body: JSON.stringify(body), headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.getRandomValues(new Uint32Array(4)).join("-") } },
      on: {
        frame: (f, data) => {
          if (f.event === "open") c.session = data.session_id;
          else if (f.event !== "done") turn.apply(f.event, data, true);
          if (f.event !== "text") this.show();
        },
        end: () => this.#finish(), gone: () => this.#finish(),
        fail: (err) => { turn.user.remove(); turn.node.remove(); c.turns.pop(); problem(err); this.show(); },
      },
    }).start();
    this.show();
  }

  async #finish() {
    const c = this.conversation;
    try {
      const page = await api.get(`sessions/${c.session}/messages?limit=40&order=desc`);
      c.load(page.data.toReversed());
      c.finish();
      speak(`The answer of ${this.name} is complete.`);
    } catch (err) { problem(err); }
    this.show();
  }

  async stop() {
    if (this.conversation.active && this.conversation.session) await api.post(`sessions/${this.conversation.session}/cancel`);
  }
}

const sides = ["left", "right"].map((id) => new Side($(id)));

$("composer").hidden = false;
$("composer").onsubmit = (e) => {
  e.preventDefault();
  const text = $("msg").value.trim();
  if (!text || $("send").disabled) return;
  problem();
  $("msg").value = "";
  for (const side of sides) side.send(text);
};
$("msg").onkeydown = (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); $("composer").requestSubmit(); }
};
$("stop").onclick = () => Promise.all(sides.map((s) => s.stop())).catch(problem);
$("again").onclick = () => { for (const s of sides) s.reset(); problem(); $("msg").focus(); };
shortcuts();
