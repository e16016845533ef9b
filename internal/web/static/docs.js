// Enhances the documentation: copy buttons, the current heading, and requests from the API reference.
const copyButton = document.getElementById("copy-button");
[...document.querySelectorAll(".codeblock")].forEach((block, i) => {
  const code = block.querySelector("code");
  code.id ||= `code-${i + 1}`;
  const button = copyButton.content.firstElementChild.cloneNode(true);
  button.dataset.copy = `#${code.id}`; // app.js copies
  block.append(button);
});

// "/" moves to the search, as in most documentation.
document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select")) return;
  e.preventDefault();
  document.getElementById("q").focus();
});

const links = new Map([...document.querySelectorAll(".toc a")].map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const a of links.values()) a.ariaCurrent = null;
    links.get(entry.target.id)?.setAttribute("aria-current", "true");
  }
}, { rootMargin: "-60px 0px -75% 0px" });
for (const id of links.keys()) {
  const heading = document.getElementById(id);
  if (heading) seen.observe(heading);
}

const form = document.querySelector("[data-try]");
if (form) tryIt(form);

// tryIt sends the request of a form and shows its answer. The key stays in the field.
function tryIt(form) {
  form.hidden = false;
  const part = (name) => form.querySelector(`[data-${name}]`);
  const [key, body, stop, status, result, headers, output] = ["key", "body", "stop", "status", "result", "headers", "output"].map(part);
  let running;
  stop.addEventListener("click", () => running?.abort());
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    if (running) return;
    running = new AbortController();
    const send = e.submitter ?? form.querySelector("[type=submit]");
    send.ariaBusy = "true";
    stop.hidden = false;
    result.hidden = true;
    output.textContent = headers.textContent = "";
    status.textContent = "Sending.";
    const began = performance.now();
    const took = () => `${Math.round(performance.now() - began)} ms`;
    try {
      const [address, options] = requestOf(form, key?.value.trim() ?? "", body);
      const response = await fetch(address, { ...options, signal: running.signal });
      status.textContent = `${response.status} ${response.statusText}`.trim() + ` after ${took()}`;
      headers.textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
      result.hidden = false;
      await show(response, output);
      status.textContent = `${response.status} ${response.statusText}`.trim() + `, complete after ${took()}`;
    } catch (err) {
      status.textContent = err.name === "AbortError" ? `Stopped after ${took()}.` : `The request failed: ${err.message}`;
    } finally {
      running = undefined;
      send.ariaBusy = null;
      stop.hidden = true;
    }
  });
}

// requestOf returns the address and the options of the request that a form describes.
function requestOf(form, key, body) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = new Headers();
  for (const field of form.querySelectorAll("[data-in]")) {
    if (field.value === "") continue;
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (field.dataset.in === "query") query.append(field.name, field.value);
    else headers.set(field.name, field.value);
  }
  if (key) headers.set("Authorization", `Bearer ${key}`);
  const options = { method: form.dataset.method, headers, credentials: key ? "omit" : "same-origin", cache: "no-store" };
  if (body?.value) {
    options.body = body.value;
    headers.set("Content-Type", body.dataset.type.includes("*") ? "application/octet-stream" : body.dataset.type);
  }
  return [query.size ? `${path}?${query}` : path, options];
}

const maxShown = 512 * 1024;

// show writes a body into an element while it arrives, JSON with indentation at its end.
async function show(response, output) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let size = 0; reader;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    output.append(value);
    if (size > maxShown) {
      output.append("\n… The rest is not shown.");
      await reader.cancel();
      return;
    }
  }
  if (response.headers.get("Content-Type")?.startsWith("application/json")) {
    try {
      output.textContent = JSON.stringify(JSON.parse(output.textContent), null, 2);
    } catch { /* shown as it came */ }
  }
}
