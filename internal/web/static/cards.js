// cards.js shows approvals, secret requests and links that connect tool servers. The server decides every character of a card: it
// renders the cards of the inbox itself, and sends those of a conversation as data. This module only
// makes the elements, arms the buttons and sends the answer.

import { el, icon, mark } from "./dom.js";

const armAfter = 500;

/** clock keeps the time of the server. */
const clock = (now) => { const offset = Date.parse(now) - performance.now(); return () => offset + performance.now(); };

/** countdown shows every second how much time is left until expires, and returns what ends it. */
export function countdown(node, expires, now, changed) {
  const timer = node.querySelector("[role=timer]");
  const tick = () => {
    const left = Math.max(0, Math.ceil((expires - now()) / 1000));
    timer.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    timer.parentElement.classList.toggle("soon", left < 60);
    changed?.(left);
  };
  const ticking = setInterval(tick, 1000);
  tick();
  return () => clearInterval(ticking);
}

const looks = {
  approval: ["approvals", "Approval needed", "denied in"], secret: ["lock", "Secret requested", "skipped in"],
  connect: ["external", "Connection needed", "expires in"], tool: ["tools", "Results needed", "fails in"],
};

/** frame makes the box of a card: its head with the countdown, and its parts. */
export function frame(kind, name, data, ...parts) {
  const id = "ask-" + name, [drawing, title, ends] = looks[kind];
  return el("section.ask" + (kind === "approval" ? "" : ".secret"), { id, role: "group", "aria-labelledby": id + "-t", tabindex: -1, "data-kind": kind, ...data },
    el("div.ask-h", icon(drawing), el("h2", { id: id + "-t" }, title), el("span.ask-t", el("span", ends), " ", el("b", { role: "timer" }, " "))), parts);
}

/** become replaces a card by its line. */
export function become(node, line) {
  const focused = node.contains(document.activeElement);
  line.tabIndex = -1;
  node.replaceWith(line);
  if (focused) line.focus();
}

const spans = (list) => (list ?? []).map((s) => s.c ? el("span." + s.c, s.t) : s.t);

function operation(op) {
  return el("li.op",
    el("div.op-h", el("b", spans(op.tool)), el("span.dim", spans(op.summary)),
      op.asks ? el("span.badge.warn", op.role) : el("span.badge", op.role)),
    el("pre", op.lines.map((line) => el("span.l", spans(line)))),
    op.warnings?.map((text) => el("p.op-w", icon("warn"), el("span", text))));
}

/** answered makes the line that a card becomes. */
function answered(view) {
  const look = { allowed: ["check", "ok"], provided: ["check", "ok"], denied: ["close", "bad"], skipped: ["close"] }[view.status] ?? ["clock"];
  return el("p.asked", { id: "ask-" + view.id, "data-status": view.status }, icon(look[0], look[1]), el("span", el("b", view.answer.word), " ", view.answer.rest));
}

const says = (lines) => lines?.length ? el("blockquote.says", el("b", "The agent says"), lines.flatMap((line, i) => [i ? el("br") : "", line])) : null;

function body(view) {
  const id = "ask-" + view.id, err = el("p.err", { hidden: true, "data-err": true });
  if (view.kind === "secret") {
    return [
      el("dl.dl", el("dt", "Name"), el("dd.mono", view.key_name),
        el("dt", "May be sent to"), el("dd", view.hosts?.length ? view.hosts.flatMap((h) => [el("span.host.mono", h), " "]) : "no host yet: an administrator names its hosts")),
      says(view.says),
      view.allow ? el("div.field", el("label", { for: id + "-v" }, "Value"),
        el("input.in.mono", { id: id + "-v", name: "value", type: "password", autocomplete: "off", "aria-describedby": id + "-h" }),
        el("p.hint", { id: id + "-h" }, "Stored encrypted for the workspace. The model never sees it, and no event holds it.")) : null, err,
    ];
  }
  if (view.kind === "connect") {
    return [
      el("dl.dl", el("dt", "Tool server"), el("dd.mono", view.server)),
      el("p.hint", "A call needs access to it. You sign in at its own authorization server and decide there. The call is made then."), err,
    ];
  }
  return [
    el("ol.ops", view.ops.map(operation)), says(view.says),
    view.pattern ? el("div.pat",
      el("label.check", el("input", { type: "checkbox", name: "always", value: "1" }), el("span", "Always allow calls like this")),
      el("input.in.mono", { name: "pattern", "aria-label": "Pattern to always allow", value: view.pattern, spellcheck: "false", autocomplete: "off" }),
      el("p.hint", { "data-preview": true }, view.pattern_hint)) : null,
    view.deny ? el("details.why", el("summary", "Give a reason for a denial"),
      el("input.in", { name: "reason", maxlength: 500, "aria-label": "Reason for a denial, which the agent reads", autocomplete: "off" })) : null, err,
  ];
}

const button = (name, value, label, more) => el("button" + name, { type: "submit", name: "decision", value, ...more }, label);

/** card makes the card of a view, or the line of one that is answered. */
export function card(view, ctx) {
  if (view.status !== "pending") return answered(view);
  const secret = view.kind === "secret";
  const node = frame(view.kind, view.id, { "data-id": view.id, "data-expires": view.expires_at, "data-now": view.now },
    el("form", { method: "post", action: `${ctx.api.pages}/approvals/${view.id}`, novalidate: true },
      button("", "provide", null, { hidden: true, disabled: !secret }), // Enter in a field provides a secret, and answers no approval
      el("div.ask-b", el("p.dim", "Sent " + view.from), body(view)),
      el("div.ask-f",
        view.deny ? button(".btn", secret ? "skip" : "deny", view.deny) : null,
        el("span.hint", view.note ?? ""),
        view.connect_url ? el("a.btn.primary", { href: view.connect_url, target: "_blank", rel: "noopener noreferrer" }, "Connect") : null,
        view.allow ? button(".btn.primary", secret ? "provide" : "allow", view.allow) : null)));
  enhance(node, ctx);
  return node;
}

/**
 * enhance gives a card its behaviour. ctx has api, say(text) for the status line, and optionally
 * changed(view), which is called when the card became a line.
 */
export function enhance(node, ctx) {
  const { api } = ctx, id = node.dataset.id, secret = node.dataset.kind === "secret";
  const form = node.querySelector("form"), foot = node.querySelector(".ask-f");
  const buttons = [...foot.querySelectorAll(".btn")], err = node.querySelector("[data-err]");
  const now = clock(node.dataset.now), expires = Date.parse(node.dataset.expires);
  let arming = 0, visible = false, busy = false, over = false;

  const disarm = () => { clearTimeout(arming); delete node.dataset.armed; for (const b of buttons) b.ariaDisabled = "true"; };
  const arm = () => {
    disarm();
    if (!visible || over || busy || document.hidden) return;
    arming = setTimeout(() => { node.dataset.armed = "true"; for (const b of buttons) b.ariaDisabled = null; }, armAfter);
  };
  const watch = new IntersectionObserver(([e]) => { visible = e.isIntersecting; arm(); }, { threshold: 0.6 });
  const close = () => {
    over = true; disarm(); watch.disconnect(); stop();
    removeEventListener("focus", arm); removeEventListener("blur", disarm); document.removeEventListener("visibilitychange", arm);
  };
  const tick = (left) => {
    if (!node.isConnected && left % 30 === 0 && node.dataset.shown) close();
    if (node.isConnected) node.dataset.shown = "1";
    if (left === 0 && !over) { disarm(); refresh(); }
  };

  /** refresh shows what the server knows now: the line, once it is answered. */
  const refresh = async (elsewhere) => {
    try { return show(await api.get(`${api.pages}/approvals/${id}/card`), elsewhere); } catch { return false; }
  };
  const show = (view, elsewhere) => {
    if (view.status === "pending" || over) return false;
    close();
    const line = answered(view);
    if (elsewhere && view.kind !== "connect") line.append(el("span.push.sm", "Answered in another client"));
    become(node, line);
    ctx.say?.(line.textContent);
    dispatchEvent(new Event("answered"));
    ctx.changed?.(view);
    return true;
  };

  const fail = (text, field) => {
    err.hidden = !text; err.textContent = text;
    for (const input of form.querySelectorAll("input.in")) mark(input, text && input === field);
    if (text) field?.focus();
  };

  const pattern = form.elements.pattern, always = form.elements.always;
  const relabel = () => {
    if (allow) allow.textContent = allow.dataset.label + (always?.checked ? ", add pattern" : "");
  };
  const allow = foot.querySelector("[value=allow]");
  if (allow) allow.dataset.label = allow.textContent;
  always?.addEventListener("change", relabel);
  let previewing = 0;
  const preview = () => {
    clearTimeout(previewing);
    previewing = setTimeout(async () => {
      const hint = node.querySelector("[data-preview]");
      try {
        const found = await api.form(`${api.pages}/approvals/${id}/preview`, { pattern: pattern.value });
        hint.textContent = found.text;
        hint.className = found.ok ? "hint" : "err";
        mark(pattern, !found.ok);
      } catch (e) { hint.textContent = e.message; }
    }, 250);
  };
  pattern?.addEventListener("input", preview);
  always?.addEventListener("change", () => { if (always.checked) preview(); });

  form.onsubmit = async (e) => {
    e.preventDefault();
    if (busy || over || !("armed" in node.dataset)) return;
    const decision = e.submitter?.value, button = foot.querySelector(`[value="${decision}"]`);
    if (!button) return;
    let answer = { decision };
    if (decision === "provide") {
      answer.value = form.elements.value.value;
      if (!answer.value) { fail("Enter the value, or skip.", form.elements.value); return; }
    }
    if (decision === "allow" && always?.checked) Object.assign(answer, { always: "1", pattern: pattern.value });
    if (decision === "deny" && form.elements.reason?.value) answer.reason = form.elements.reason.value;
    busy = true; disarm(); fail("");
    button.ariaBusy = "true";
    let view = null;
    try { view = await api.form(form.getAttribute("action"), answer); } catch (problem) { fail(problem.message, problem.param === "allowlist_pattern" ? pattern : null); }
    answer = null;
    if (secret && view) form.elements.value.value = "";
    button.ariaBusy = null;
    busy = false;
    if (!view || !show(view, view.elsewhere)) arm();
  };

  node.refresh = refresh;
  delete node.dataset.armed;
  disarm(); relabel();
  const stop = countdown(node, expires, now, tick);
  watch.observe(foot);
  addEventListener("focus", arm); addEventListener("blur", disarm); document.addEventListener("visibilitychange", arm);
}

const typing = (node) => node.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

/** shortcuts lets g a focus the first card, j and k the next and previous, a allow and d deny. */
export function shortcuts() {
  let before = "";
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.repeat || typing(e.target)) { before = ""; return; }
    const cards = [...document.querySelectorAll(".ask")], here = e.target.closest(".ask");
    const focus = (card) => { if (!card) return; e.preventDefault(); card.focus(); card.scrollIntoView({ block: "nearest" }); };
    if (before === "g" && e.key === "a") focus(cards[0]);
    else if (e.key === "j") focus(cards[here ? cards.indexOf(here) + 1 : 0]);
    else if (e.key === "k" && here) focus(cards[cards.indexOf(here) - 1]);
    else if (here?.dataset.kind === "approval" && (e.key === "a" || e.key === "d") && "armed" in here.dataset) {
      e.preventDefault();
      here.querySelector(`[value=${e.key === "a" ? "allow" : "deny"}]`)?.click();
    }
    before = e.key;
  });
}
