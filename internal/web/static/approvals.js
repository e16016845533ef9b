// approvals.js gives the cards of the inbox their behaviour. Without it they are forms.

import { Api } from "./api.js";
import { enhance, shortcuts } from "./cards.js";

const { root, workspace, tab } = document.getElementById("approvals").dataset;
const ctx = { api: new Api(root, workspace), say: (words) => { document.getElementById("say").textContent = words; } };
const news = document.getElementById("news");

for (const node of document.querySelectorAll(".ask")) enhance(node, ctx);
shortcuts();

// What another approver answered becomes a line; what is new is offered, because a card that moves
// down under the pointer gets a click that was meant for another.
addEventListener("pending", ({ detail: pending }) => {
  for (const node of document.querySelectorAll(".ask")) if (!pending.includes(node.dataset.id)) node.refresh(true);
  const count = document.querySelector(".tabs .count");
  if (count) { count.textContent = pending.length; count.hidden = !pending.length; }
  if (tab !== "pending" || !news) return;
  const n = pending.filter((id) => !document.getElementById(`ask-${id}`)).length;
  news.hidden = n === 0;
  news.querySelector("span").textContent = n === 1 ? "1 new request." : `${n} new requests.`;
});
