// skillform.js makes the form of a skill from its contract.

import { el, mark, parsed } from "./dom.js";

const kinds = { date: "date", month: "month", time: "time", "date-time": "text", email: "email", uri: "url", url: "url" };

function control(input, id) {
  const hint = input.description || input.format ? `${id}-h` : null;
  const common = { id, name: input.name, "aria-describedby": hint, required: false };
  switch (input.type) {
    case "enum": return el("select.in", common, input.required ? null : el("option", { value: "" }, "–"), input.values.map((v) => el("option", { value: v, selected: v === input.default }, v)));
    case "boolean": return el("select.in", common, el("option", { value: "" }, "–"), ["true", "false"].map((v) => el("option", { value: v, selected: String(input.default) === v }, v)));
    case "integer": case "number": return el("input.in", { ...common, inputmode: "decimal", value: input.default ?? null });
    case "array": return el("textarea.in", { ...common, rows: 3, placeholder: input.items?.type === "string" || input.items?.type === "enum" ? "One value a line" : "A JSON array" });
    case "object": return el("textarea.in.mono", { ...common, rows: 3, placeholder: "A JSON object" });
    default: return el("input.in", { ...common, type: kinds[input.format] ?? "text", value: input.default ?? null });
  }
}

/** value reads a field: undefined if it is empty; text that is not of the type is left to the server's check. */
function value(input, text) {
  if (text.trim() === "") return undefined;
  switch (input.type) {
    case "boolean": case "integer": case "number": case "object": return parsed(text);
    case "array": return ["string", "enum"].includes(input.items?.type) ? text.split("\n").map((l) => l.trim()).filter(Boolean) : parsed(text);
    default: return text;
  }
}

/** SkillForm shows the fields of one skill. */
export class SkillForm {
  constructor(skill, close) {
    this.skill = skill;
    this.fields = (skill.inputs ?? []).map((input) => {
      const id = `in-${input.name}`, node = control(input, id), err = el("p.err", { role: "alert", hidden: true });
      return { input, node, err };
    });
    this.free = skill.inputs ? null : el("textarea.in.mono", { id: "in-free", rows: 3, placeholder: "{}" });
    this.freeErr = el("p.err", { role: "alert", hidden: true });
    this.node = el("fieldset.card-b",
      el("legend.row", el("b.mono", "/" + skill.name), el("button.btn.quiet.small", { onclick: close }, "Remove")),
      skill.description ? el("p.hint", skill.description) : null,
      this.fields.map(({ input, node, err }) => el("div.field", el("label", { for: node.id }, input.name, input.required ? null : el("span.dim", " (optional)")), node,
        input.description || input.format ? el("p.hint", { id: node.id + "-h" }, [input.description, input.format && `Format: ${input.format}.`].filter(Boolean).join(" ")) : null, err)),
      this.free ? el("div.field", el("label", { for: "in-free" }, "Input, a JSON object"), this.free) : null, this.freeErr);
  }

  /** input returns the skill's input. It throws an Error for a free input that is not JSON. */
  input() {
    if (this.free) {
      if (this.free.value.trim() === "") return undefined;
      try { return JSON.parse(this.free.value); } catch { throw new Error("The input is not JSON."); }
    }
    const all = this.fields.map(({ input, node }) => [input.name, value(input, node.value)]).filter(([, v]) => v !== undefined);
    return all.length ? Object.fromEntries(all) : undefined;
  }

  /** show puts violations next to their fields, and returns those of no field. */
  show(violations) {
    for (const f of [...this.fields, { node: this.free, err: this.freeErr }]) { f.err.hidden = true; if (f.node) mark(f.node); }
    const rest = [];
    for (const v of violations) {
      const name = v.param.replace(/^\/(?:input\/)?/, "").split("/")[0].replaceAll("~1", "/").replaceAll("~0", "~");
      const field = this.fields.find((f) => f.input.name === name) ?? (this.free && v.param.startsWith("/input") ? { node: this.free, err: this.freeErr } : null);
      if (!field) { rest.push(v); continue; }
      field.err.textContent = v.message + (v.suggestion ? ` Did you mean ${JSON.stringify(v.suggestion)}?` : "");
      field.err.hidden = false;
      mark(field.node, true);
    }
    this.node.querySelector("[aria-invalid=true]")?.focus();
    return rest;
  }
}
