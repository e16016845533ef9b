// toolcard.js shows the calls of the caller's own tools, with a form for the result of each.

import { become, countdown, frame } from "./cards.js";
import { el, icon, mark, parsed } from "./dom.js";

// What cannot be seen is written out, as on the other cards.
const hidden = /[\u0080-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const visible = (text) => text.replace(hidden, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

/**
 * toolCard makes the card of an event tool_required. ctx has api, say(text), can and changed().
 * The node has answered(id, ok), which a result calls, and close(), which the end of the turn calls.
 */
export function toolCard(data, ctx) {
  const id = "ask-" + data.approval_id;
  const open = new Map(), total = data.calls.length;

  const close = () => {
    stop();
    if (!node.isConnected) return;
    const failed = open.size ? `, ${open.size} without one` : "";
    become(node, el("p.asked", { id }, icon("check", "ok"), el("span", el("b", "Results"), ` of ${total - open.size} of your tools' calls${failed}`)));
    ctx.changed?.();
  };
  const answered = (call, words) => {
    const row = open.get(call);
    if (!row) return;
    open.delete(call);
    row.querySelector("form")?.replaceWith(el("p.tool-b.dim", words));
    row.querySelector(".badge").replaceWith(el("span.badge.ok", "answered"));
    if (!open.size) close();
  };

  const form = (call, at) => {
    const name = `${id}-${at}`, err = el("p.err", { id: name + "-e", role: "alert", hidden: true });
    const output = el("textarea.in.mono", { id: name, rows: 2, spellcheck: "false", "aria-describedby": `${name}-h ${name}-e` });
    const failed = el("input", { type: "checkbox" }), button = el("button.btn.primary", { type: "submit" }, "Send result");
    const fail = (words) => { err.textContent = words; err.hidden = !words; mark(output, words); if (words) output.focus(); };
    const send = async (e) => {
      e.preventDefault();
      if (button.ariaBusy) return;
      if (!output.value.trim()) { fail(failed.checked ? "Enter the reason." : "Enter the result."); return; }
      fail("");
      button.ariaBusy = "true";
      const result = failed.checked ? { error: output.value } : { output: parsed(output.value) };
      try {
        // The page can only reach its own origin; the address may have another name of the server.
        await ctx.api.post(new URL(data.reply_url, location.href).pathname, { results: [{ tool_use_id: call.tool_use_id, ...result }] });
        answered(call.tool_use_id, "Your result was sent.");
        ctx.say?.(`Result of ${call.tool} sent.`);
      } catch (problem) {
        if (problem.code === "TOOL_CALL_ANSWERED") answered(call.tool_use_id, "Another client has sent the result.");
        else fail(problem.message);
      }
      button.ariaBusy = null;
    };
    return el("form.tool-b", { novalidate: true, onsubmit: send },
      el("div.field", el("label", { for: name }, `Result of ${call.tool}`), output, err, el("p.hint", { id: name + "-h" }, "JSON, or any text. The model reads it.")),
      el("div.row", el("label.check", failed, el("span", "The call failed, and this is the reason")), el("span.push", button)));
  };

  const rows = data.calls.map((call, at) => {
    const row = el("li.op", el("div.op-h", el("b", visible(call.tool)), el("span.badge.warn.push", "waits for a result")),
      el("pre", visible(JSON.stringify(call.input, null, 2))), ctx.can.chat ? form(call, at) : null);
    open.set(call.tool_use_id, row);
    return row;
  });
  const node = frame("tool", data.approval_id, {}, el("div.ask-b", ctx.can.chat ? null : el("p.dim", "Your role can only read this."), el("ol.ops", rows)));
  const stop = countdown(node, Date.parse(data.expires_at), Date.now);
  return Object.assign(node, { answered: (call) => answered(call, "Answered."), close });
}
