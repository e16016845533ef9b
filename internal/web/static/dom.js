// dom.js makes elements. Text becomes text nodes only: no text is ever parsed as HTML.

import { copyText as copyElement } from "./copy.js";

export const $ = (id) => document.getElementById(id);

/** el("div.row.wrap", {title: "x", onclick: f}, ...children) makes an element; children are nodes, texts or null. The object may be absent. */
export function el(name, ...children) {
  const [tag, ...classes] = name.split("."), props = children[0]?.constructor === Object ? children.shift() : {};
  const node = document.createElement(tag);
  if (tag === "button") node.type = "button";
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

/** icon clones a drawing that the page holds in a template element. */
export function icon(name, extra) {
  const svg = $("icon-" + name).content.firstElementChild.cloneNode(true);
  if (extra) svg.classList.add(...extra.split(" "));
  return svg;
}

/** iconButton makes a button that shows only an icon. */
export function iconButton(name, label, onclick, extra = "small") {
  return el("button.btn.quiet.icon." + extra, { "aria-label": label, title: label, onclick }, icon(name));
}

/** code makes a block of code that the keyboard can scroll. */
export const code = (label, ...content) => el("pre.code", { tabindex: 0, role: "region", "aria-label": label }, content);

/** spinner turns until something has happened. */
export const spinner = () => el("span.spin", { "aria-hidden": "true" });

/** pause waits. */
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** parsed is what a text stands for: JSON, or the text itself. */
export const parsed = (text) => { try { return JSON.parse(text); } catch { return text; } };

/** mark marks a field as wrong or right. */
export const mark = (field, wrong) => { field.ariaInvalid = Boolean(wrong); };

/** copyText copies a text that no element shows. */
export async function copyText(text, near = document.body) {
  const pre = el("pre.vh", text);
  near.append(pre);
  try { return await copyElement(pre); } finally { pre.remove(); }
}

/** copyButton makes a button that copies what text() returns and says so. */
export function copyButton(label, text, name = "button.btn.small.quiet") {
  const say = el("span", label);
  return el(name, {
    onclick: async (e) => {
      say.textContent = (await copyText(text(), e.currentTarget)) ? "Copied" : "Not copied";
      setTimeout(() => { say.textContent = label; }, 1500);
    },
  }, icon("copy"), say);
}
