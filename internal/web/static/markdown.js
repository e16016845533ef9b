// markdown.js renders a model's Markdown as nodes. marked only splits the text into tokens; raw HTML
// is shown as text, images as links, and links lead only to web and mail addresses.

import { lexer } from "./vendor/marked.js";
import { el } from "./dom.js";

const maxDepth = 24;

/** safeURL returns an absolute web or mail address, or "". */
export function safeURL(href) {
  try {
    const url = new URL(String(href), location.href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : "";
  } catch { return ""; }
}

function link(href, title, children) {
  const url = safeURL(href);
  return url ? el("a", { href: url, title: title || null, target: "_blank", rel: "noopener noreferrer nofollow" }, children) : el("span", children);
}

// plain undoes the entities that marked leaves in its text.
const entities = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };
const plain = (text) => text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi, (all, dec, hex, name) => {
  if (name) return entities[name.toLowerCase()];
  const code = parseInt(dec ?? hex, dec ? 10 : 16);
  return code && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000) ? String.fromCodePoint(code) : "\uFFFD";
});

function inline(tokens, depth) {
  return (tokens ?? []).map((t) => {
    if (depth > maxDepth) return t.raw;
    const inner = () => inline(t.tokens, depth + 1);
    switch (t.type) {
      case "strong": return el("strong", inner());
      case "em": return el("em", inner());
      case "del": return el("del", inner());
      case "codespan": return el("code", t.text);
      case "br": return el("br");
      case "link": return link(t.href, t.title, inner());
      case "image": return link(t.href, t.title, `image: ${t.text || t.href}`);
      case "escape": return t.text;
      case "text": return t.tokens ? inner() : plain(t.text);
      case "checkbox": return el("input", { type: "checkbox", disabled: true, checked: t.checked, "aria-label": t.checked ? "done" : "open" });
      default: return t.raw; // html too
    }
  }).flat();
}

function table(t, depth) {
  const cell = (name, c, i) => el(name, { class: t.align[i] === "right" ? "n" : null, scope: name === "th" ? "col" : null }, inline(c.tokens, depth));
  return el("div.frame", { tabindex: 0, role: "region", "aria-label": "Table" }, el("table",
    el("thead", el("tr", t.header.map((c, i) => cell("th", c, i)))),
    el("tbody", t.rows.map((row) => el("tr", row.map((c, i) => cell("td", c, i)))))));
}

function block(t, depth = 0) {
  if (depth > maxDepth) return el("p", t.raw);
  const blocks = () => t.tokens.map((b) => block(b, depth + 1));
  switch (t.type) {
    case "space": case "def": return null;
    case "heading": return el(t.depth < 3 ? "h3" : "h4", inline(t.tokens, depth));
    case "paragraph": return el("p", inline(t.tokens, depth));
    case "text": return t.tokens ? el("span", inline(t.tokens, depth)) : el("span", plain(t.text));
    case "code": return el("pre.code", { tabindex: 0, "aria-label": t.lang ? `Code, ${t.lang}` : "Code" }, t.text);
    case "blockquote": return el("blockquote.says", blocks());
    case "hr": return el("hr");
    case "table": return table(t, depth);
    case "list": return el(t.ordered ? "ol" : "ul", { start: t.ordered && t.start !== 1 ? t.start : null },
      t.items.map((item) => el("li", item.tokens.map((b) => b.type === "checkbox" ? inline([b], depth) : block(b, depth + 1)))));
    default: return el("p", t.raw); // html too
  }
}

const tokens = (source) => lexer(source, { gfm: true, breaks: false });

/** render returns the nodes of a whole text. */
export function render(source) {
  try { return tokens(source).map((t) => block(t)).filter(Boolean); } catch { return [el("p", source)]; }
}

/**
 * Prose shows a text that grows. Only its last block is read again: the blocks before it cannot
 * change any more.
 */
export class Prose {
  #settled = ""; #tail = ""; #open = []; #frame = 0;

  constructor() {
    this.node = el("div.prose");
    this.source = "";
    this.caret = el("span.caret", { "aria-hidden": "true" });
  }

  append(text) {
    this.source += text;
    this.#tail += text;
    this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.#draw(); });
  }

  /** finish shows the whole text once more, with references that were defined late. */
  finish() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.node.replaceChildren(...render(this.source));
    return this.node;
  }

  #draw() {
    let list;
    try { list = tokens(this.#tail); } catch { list = [{ type: "paragraph", raw: this.#tail, tokens: [{ type: "text", raw: this.#tail, text: this.#tail }] }]; }
    const last = list.findLastIndex((t) => t.type !== "space");
    const settled = list.slice(0, Math.max(last, 0));
    for (const node of this.#open) node.remove();
    this.node.append(...settled.map((t) => block(t)).filter(Boolean));
    const raw = settled.map((t) => t.raw).join("");
    this.#settled += raw;
    this.#tail = this.#tail.slice(raw.length);
    this.#open = list.slice(settled.length).map((t) => block(t)).filter(Boolean);
    this.node.append(...this.#open);
    const end = this.#open.at(-1);
    (end && ["P", "H3", "H4"].includes(end.tagName) ? end : this.node).append(this.caret);
  }
}
