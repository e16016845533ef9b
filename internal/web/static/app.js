// Enhances pages that work without it: theme, copy buttons, dialogs, popovers, busy buttons.
import { copyText } from "./copy.js";

const themes = ["", "light", "dark"];

// The server writes the theme from the cookie, so that no page flashes.
document.addEventListener("submit", (e) => {
  const form = e.target;
  if (form.matches("[data-theme-form]")) {
    e.preventDefault();
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset.theme ?? "") + 1) % 3];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `parley_theme=${next}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    form.querySelector("button").title = `Theme: ${next || "system"}`;
    return;
  }
  const button = e.submitter;
  if (form.method === "post" && button?.matches(".btn")) {
    // After the submission has read the button's value.
    queueMicrotask(() => { if (!e.defaultPrevented) button.ariaBusy = "true"; });
  }
});

// A page that comes back from the browser's cache has no busy buttons.
addEventListener("pageshow", (e) => {
  if (e.persisted) for (const b of document.querySelectorAll("[aria-busy=true]")) b.ariaBusy = null;
});

document.addEventListener("click", async (e) => {
  const button = e.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  const done = await copyText(source);
  const status = document.createElement("span");
  status.className = "vh";
  status.role = "status";
  button.after(status);
  status.textContent = done ? "Copied" : "Copying failed. Select the text and copy it.";
  button.dataset.copied = done ? "yes" : "no";
  setTimeout(() => { status.remove(); delete button.dataset.copied; }, 2000);
});

// A new key is tested with a request that changes nothing, without the session of the user.
for (const row of document.querySelectorAll("[data-try-key]")) {
  row.hidden = false;
  const button = row.querySelector("button"), status = row.querySelector("[role=status]");
  button.addEventListener("click", async () => {
    button.ariaBusy = "true";
    const headers = { Authorization: "Bearer " + document.getElementById("once").value };
    try {
      const res = await fetch(row.dataset.tryKey, { headers, credentials: "omit", cache: "no-store" });
      const missing = res.status === 403 && (await res.json()).error.required_scope;
      status.textContent = res.ok ? "The key works: the list of sessions was read."
        : missing ? `The key is valid. It lacks ${missing}, so it cannot list sessions.` : `The key was rejected with status ${res.status}.`;
    } catch { status.textContent = "The server cannot be reached."; }
    button.ariaBusy = null;
  });
}

// Select elements of filters send their form at once.
document.addEventListener("change", (e) => {
  if (e.target.matches("[data-submit]")) e.target.form.requestSubmit();
});

// The server renders a question as an open dialog in the page; here it becomes modal.
for (const dialog of document.querySelectorAll("dialog[data-modal]")) {
  dialog.removeAttribute("open"); // close() would report its end later
  dialog.classList.remove("inline");
  dialog.showModal();
  dialog.addEventListener("close", () => {
    const back = dialog.querySelector("a[data-back]");
    if (back && !dialog.dataset.sent) location.assign(back.href);
  });
  dialog.addEventListener("submit", () => { dialog.dataset.sent = "yes"; });
}

// A popover of the narrow layout would hide its part of the wide one.
addEventListener("resize", () => {
  for (const open of document.querySelectorAll(":popover-open")) open.hidePopover();
});
