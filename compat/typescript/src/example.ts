// Conversations with an agent: PARLEY_URL, PARLEY_API_KEY and PARLEY_WORKSPACE say with which.
import assert from "node:assert/strict";
import type { components } from "../generated/parley.js";
import { Parley, Refused, value } from "./client.js";
import type { Frame } from "./frames.js";
import { show } from "./show.js";

type Schemas = components["schemas"];

const { PARLEY_URL: url = "http://127.0.0.1:8080", PARLEY_API_KEY: key = "", PARLEY_WORKSPACE: workspace = "demo" } = process.env;
const parley = new Parley(url, key, workspace);

/** Sends a message, shows its turn, and leaves it where it asks for something. */
async function say(command: string): Promise<{ session: string; last: Frame }> {
  let session = "";
  for await (const frame of parley.send({ command })) {
    show(frame);
    if (frame.event === "open") session = frame.data.session_id;
    if (frame.event === "input_required" || frame.event === "done") return { session, last: frame };
  }
  throw new Error("unreachable: a stream ends with done");
}

/** Answers what a turn asks: `kind` tells which answer it takes. */
async function answer(request: Schemas["InputRequired"]): Promise<string> {
  const path = { id: workspace, approvalId: request.approval_id };
  switch (request.kind) {
    case "approval": {
      for (const operation of request.operations) console.log(`  ${operation.summary}, from now on with ${operation.suggested_pattern}`);
      const body = { decision: "allow" } as const;
      const decided = await parley.api.POST("/api/workspaces/{id}/approvals/{approvalId}/decide", { params: { path }, body });
      return value(decided).data.status;
    }
    case "secret": {
      console.log(`  ${request.key_name}: ${request.reason}`);
      const body = { action: "provide", value: crypto.randomUUID() } as const;
      const decided = await parley.api.POST("/api/v1/workspaces/{id}/approvals/{approvalId}/secret", { params: { path }, body });
      return value(decided).data.status;
    }
  }
  request satisfies never;
}

/** Lets a turn ask, answers, and goes on reading where it left. */
async function ask(command: string): Promise<string> {
  const { session, last } = await say(command);
  assert.equal(last.event, "input_required");
  const status = await answer(last.data);
  console.log(`  ${status}`);
  for await (const frame of parley.resume(session, last.id)) show(frame);
  return status;
}

/** Says what is wrong with a message: `code` tells which details there are. */
async function explain(body: Schemas["MessageRequest"]): Promise<string> {
  const { error } = await parley.api.POST("/api/v1/workspaces/{id}/messages", { params: { path: { id: workspace } }, body });
  assert(error, "it was taken");
  switch (error.error.code) {
    case "UNKNOWN_SKILL":
      return error.error.candidates ? `did you mean ${error.error.candidates.join(" or ")}?` : error.error.message;
    case "INVALID_REQUEST":
    case "INVALID_SKILL_INPUT":
      return (error.error.violations ?? []).map((v) => `${v.param}: ${v.message}`).join("\n");
    case "TURN_IN_PROGRESS":
      return `wait for ${error.error.turn.events_url}`; // with this code there always is a turn
    case "RATE_LIMITED":
      return `wait ${error.error.retry_after} s`;
    default:
      return `${error.error.code}: ${error.error.message}`;
  }
}

/** Asks for an answer in a schema. */
async function fill(command: string): Promise<unknown> {
  const response_schema = { type: "object", properties: { result: { type: "number" } }, required: ["result"] };
  for await (const frame of parley.send({ command, response_schema })) {
    show(frame);
    if (frame.event === "structured") return frame.data.result;
  }
  throw new Error("there is no such answer");
}

/** Lists all sessions, page by page. */
async function* sessions(): AsyncGenerator<Schemas["Session"], void> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { limit: 2, ...(cursor && { cursor }) };
    const page = value(await parley.api.GET("/api/v1/workspaces/{id}/sessions", { params: { path: { id: workspace }, query } }));
    yield* page.data;
    cursor = page.next_cursor;
  }
}

console.log("— a blocking call, in the session of a caller");
const blocking = await parley.api.POST("/api/v1/workspaces/{id}/messages", {
  params: { path: { id: workspace } },
  body: { command: "Calculate 6 * 7", caller_id: "example", stream: false },
});
const whole = value(blocking);
assert("output" in whole);
console.log(whole.output);

console.log("— a stream");
assert.equal((await say("count to 12")).last.event, "done");

console.log("— an approval, answered apart from the stream");
assert.equal(await ask("Ask me for an approval"), "allowed");

console.log("— a secret, the same way");
assert.equal(await ask('@call request_secret {"key_name":"EXAMPLE_TOKEN","reason":"It is an example."}'), "provided");

console.log("— an answer in a schema");
console.log(await fill("Calculate 6 * 7"));

console.log("— what may go wrong");
console.log(await explain({ skill: "no-such-skill" }));
console.log(await explain({ command: "", limits: { max_turns: 0 } }));
await assert.rejects(new Parley(url, "nonsense", workspace).send({ command: "hello" }).next(), (error) => {
  assert(error instanceof Refused);
  console.log(`${error.failure.code}: ${error.message}`);
  return error.failure.code === "INVALID_API_KEY";
});

console.log("— sessions");
for await (const session of sessions()) console.log(`${session.status}, ${session.message_count} messages: ${session.title}`);
console.log("The example has ended well.");
