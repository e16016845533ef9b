// What the clients share: where the server is, and how to lose it.
import { randomUUID } from "node:crypto";

export const url = process.env.PARLEY_URL;
export const key = process.env.PARLEY_API_KEY;
export const workspace = `${url}/api/v1/workspaces/w`;
export const headers = { Authorization: `Bearer ${key}` };
export const id = () => randomUUID();

const control = async (what) => {
  const res = await fetch(`${process.env.PARLEY_CONTROL_URL}/${what}`, { method: "POST" });
  if (!res.ok) throw new Error(`${what}: ${res.status}`);
};

// crash kills the server with kill -9; when it returns another one is up in its place.
export const crash = () => control("crash");

// expire lets the time of all questions run out; when it returns they are answered so.
export const expire = () => control("expire");

// A turn that says a hundred things for two seconds, and what they are.
export const long = "@text 100 deltas of 12 bytes at 50/s";
export const longText = Array.from({ length: 100 }, (_, i) => `${i}`.padEnd(11, ".") + " ").join("");

// A turn that needs an approval.
export const careful = `@say I save it.\n@call wiki_write {"page":"travel-${id().slice(0, 8)}","content":"Trains first."}\n@say The end.`;

// The same with two calls at once.
export const carefulTwice = careful.replace('"}\n', `"} wiki_write {"page":"food-${id().slice(0, 8)}","content":"Soup."}\n`);

// The same with an answer in a schema.
export const carefulJSON = careful.replace("@say The end.", '@structured {"saved":true}');

// A turn that calls a tool of the client's own.
export const clock = "@call get_time {}\n@say The end.";

// post sends a message over the service's own interface.
export const post = (body, more) =>
  fetch(`${workspace}/messages`, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body), ...more });

// begun starts a turn and leaves it after its first frames.
export async function begun(body) {
  const leave = new AbortController();
  const res = await post(body, { signal: leave.signal });
  let seen = "";
  for await (const chunk of res.body.pipeThrough(new TextDecoderStream())) {
    if ((seen += chunk).includes("event: text")) break;
  }
  leave.abort();
  return /"session_id":"([^"]+)"/.exec(seen)[1];
}
