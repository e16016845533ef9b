// The OpenAI client, with nothing but a base URL and a key.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { LengthFinishReasonError } from "openai/error";
import { careful, carefulJSON, id, key, long, url } from "./common.js";

export async function openai() {
  const client = new OpenAI({ baseURL: `${url}/openai/v1`, apiKey: key });
  const say = (content, more) => ({ model: "w", messages: [{ role: "user", content }], ...more });

  const allow = (question) => question.match(/`(allow [0-9A-Z]{6})`/)[1]; // the reply that a question shows

  const models = await client.models.list();
  assert.equal(models.data[0].id, "w");
  assert.equal((await client.models.retrieve("w")).object, "model");

  const whole = await client.chat.completions.create(say("What is 12*7+3?"));
  assert.equal(whole.choices[0].message.content, "12*7+3 = 87");
  assert.ok(whole.usage.total_tokens > 0);

  const told = { text: "", finish: "", usage: undefined, chunks: 0 };
  for await (const chunk of await client.chat.completions.create(say("count to 5", { stream: true, stream_options: { include_usage: true } }))) {
    told.chunks++;
    told.text += chunk.choices[0]?.delta.content ?? "";
    told.finish ||= chunk.choices[0]?.finish_reason;
    told.usage ??= chunk.usage;
  }
  assert.deepEqual([told.text, told.finish], ["1 2 3 4 5", "stop"]);
  assert.ok(told.usage.completion_tokens > 0 && told.chunks > 5, "it was streamed");

  const parsed = await client.chat.completions.parse(
    say('@structured {"sky":"blue"}', {
      response_format: { type: "json_schema", json_schema: { name: "sky", strict: true, schema: { type: "object", properties: { sky: { type: "string" } }, required: ["sky"], additionalProperties: false } } },
    }),
  );
  assert.deepEqual(parsed.choices[0].message.parsed, { sky: "blue" });

  // What is no answer is a refusal, which is parsed to nothing; the rest of the turn is JSON again,
  // for this client parses whatever is the content.
  const json = { response_format: { type: "json_schema", json_schema: { name: "any", schema: { type: "object" } } } };
  const inJSON = { user: id(), ...json };
  let asked;
  for (const text of [carefulJSON, "continue", "allow"]) {
    asked = (await client.chat.completions.parse(say(text, inJSON))).choices[0];
    assert.match(asked.message.refusal, /^\*\*Approval needed/);
    assert.deepEqual([asked.message.content, asked.message.parsed, asked.finish_reason], [null, null, "stop"]);
  }
  assert.deepEqual((await client.chat.completions.parse(say(allow(asked.message.refusal), { user: inJSON.user, ...json }))).choices[0].message.parsed, { saved: true });
  const refusing = client.chat.completions.stream(say(carefulJSON, { ...inJSON, user: id() }));
  let refusal = "";
  refusing.on("refusal.delta", (e) => (refusal += e.delta));
  assert.equal((await refusing.finalMessage()).refusal, refusal);
  assert.ok(allow(refusal));

  // A text that was cut is no whole answer.
  assert.equal((await client.chat.completions.create(say("@say Half\n@length"))).choices[0].finish_reason, "length");
  await assert.rejects(client.chat.completions.parse(say("@say Half\n@length")), LengthFinishReasonError);

  // Errors have OpenAI's shape, before and within a stream.
  const refused = (status, code) => (err) => err instanceof OpenAI.APIError && err.status === status && err.code === code && err.message.length > 10;
  await assert.rejects(new OpenAI({ baseURL: `${url}/openai/v1`, apiKey: "wrong" }).models.list(), refused(401, "INVALID_API_KEY"));
  await assert.rejects(client.chat.completions.create(say("x", { model: "gpt-4o" })), refused(404, "WORKSPACE_NOT_FOUND"));
  await assert.rejects(client.chat.completions.create(say("@error model_error")), refused(422, "model_error"));
  await assert.rejects(
    async () => {
      for await (const _ of await client.chat.completions.create(say("@error model_error", { stream: true }))) continue;
    },
    (err) => err instanceof OpenAI.APIError && err.code === "model_error",
  );

  // The Responses API: what names the response before goes on in its session.
  const first = await client.responses.create({ model: "w", input: "count to 4" });
  assert.deepEqual([first.output_text, first.status], ["1 2 3 4", "completed"]);
  let deltas = "";
  const events = client.responses.stream({ model: "w", input: "count to 3", previous_response_id: first.id });
  events.on("response.output_text.delta", (e) => (deltas += e.delta));
  const last = await events.finalResponse();
  assert.deepEqual([deltas, last.output_text, last.session_id], ["1 2 3", "1 2 3", first.session_id]);
  assert.equal((await client.responses.create({ model: "w", input: "@say Half\n@length" })).incomplete_details.reason, "max_output_tokens");
  await assert.rejects(client.responses.create({ model: "w", input: "x", user: 7 }), (err) => err.status === 400 && err.param === "user");

  // A question in the Responses API, and what follows it.
  const format = { text: { format: { type: "json_schema", name: "any", schema: { type: "object" } } } };
  const asking = await client.responses.parse({ model: "w", input: carefulJSON, ...format });
  assert.match(asking.output[0].content[0].refusal, /Approval needed/);
  assert.equal(asking.output_parsed, null);
  const repeated = client.responses.stream({ model: "w", input: "continue", previous_response_id: asking.id, ...format });
  let again = "";
  repeated.on("response.refusal.delta", (e) => (again += e.delta));
  const waiting = await repeated.finalResponse();
  assert.equal(again, asking.output[0].content[0].refusal);
  const answered = await client.responses.parse({ model: "w", input: allow(again), previous_response_id: waiting.id, ...format });
  assert.deepEqual(answered.output_parsed, { saved: true });
  assert.equal(new Set([asking.id, waiting.id, answered.id]).size, 3);
  assert.equal((await client.responses.create({ model: "w", input: "count to 2", previous_response_id: answered.id })).session_id, asking.session_id);

  // Two calls in one chat are one session; an approval is a question that the next message answers.
  const user = id();
  const question = await client.chat.completions.create(say(careful, { user }));
  assert.match(question.choices[0].message.content, /Approval needed/);
  const allowed = await client.chat.completions.create(say(allow(question.choices[0].message.content), { user }));
  assert.match(allowed.choices[0].message.content, /The end\./);
  assert.equal(allowed.session_id, question.session_id);

  // What this client sends again of itself, because the answer was lost, starts no second turn
  // and decides no second question.
  let lose = false;
  const losing = async (input, init) => {
    if (!lose) return fetch(input, init);
    lose = false;
    const drop = new AbortController();
    const res = await fetch(input, { ...init, signal: drop.signal });
    await res.body.getReader().read();
    drop.abort();
    throw new TypeError("the connection was dropped");
  };
  const shaky = new OpenAI({ baseURL: `${url}/openai/v1`, apiKey: key, fetch: losing });
  const once = async (content, more) => {
    lose = true;
    const got = await shaky.chat.completions.create(say(content, more)).withResponse();
    assert.equal(lose, false);
    return got;
  };
  const slow = "@text 20 deltas of 4 bytes at 20/s";
  const text = (await client.chat.completions.create(say(slow))).choices[0].message.content;
  // In a chat without a name it is a message of its own: somebody else may have said the same.
  for (const [more, replayed] of [[{ user: id() }, "true"], [{}, null]]) {
    const { data, response } = await once(slow, { ...more, stream: true });
    let told = "";
    for await (const chunk of data) told += chunk.choices[0]?.delta.content ?? "";
    assert.deepEqual([told, response.headers.get("idempotent-replayed")], [text, replayed]);
  }
  const twice = { user: id() };
  const waits = await client.chat.completions.create(say(careful, twice));
  const before = (await once(allow(waits.choices[0].message.content), twice)).data.choices[0].message.content;
  assert.match(before, /The end\./);
  assert.equal((await client.chat.completions.create(say("continue", twice))).choices[0].message.content, before);

  // Leaving stops nothing; what stops a turn is a word.
  const leave = new AbortController();
  const chat = id();
  for await (const chunk of await client.chat.completions.create(say(long, { user: chat, stream: true }), { signal: leave.signal })) {
    if (chunk.choices[0]?.delta.content) leave.abort();
  }
  await assert.rejects(client.chat.completions.create(say("another message", { user: chat }), { maxRetries: 0 }), refused(409, "TURN_IN_PROGRESS"));
  const ended = await client.chat.completions.create(say("cancel", { user: chat }));
  assert.equal(ended.choices[0].message.content, "The turn was canceled.");

  await functions(client, say);
}

// Two functions of the client and one tool of the server in one step, in both APIs.
async function functions(client, say) {
  const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
  const task = '@call wiki_read {"page":"onboarding"} get_weather {"city":"Rome"} get_time {"city":"Rome"}\n@say It is sunny at noon.';
  const ran = [];
  const tool = (name, answer) => ({
    type: "function",
    function: {
      name,
      description: `The ${name} of a city.`,
      parameters: city,
      parse: JSON.parse,
      function: (input) => {
        ran.push(name, input.city);
        return answer;
      },
    },
  });
  const tools = [tool("get_weather", "22 C"), tool("get_time", "noon")];
  for (const user of [undefined, id()]) {
    ran.length = 0;
    const run = client.chat.completions.runTools(say(task, { tools, ...(user && { user }) }));
    assert.equal(await run.finalContent(), "It is sunny at noon.");
    assert.deepEqual(ran, ["get_weather", "Rome", "get_time", "Rome"]);
    const streamed = client.chat.completions.runTools(say(task, { tools, stream: true, ...(user && { user }) }));
    assert.equal(await streamed.finalContent(), "It is sunny at noon.");
    assert.equal(ran.length, 8);
  }

  // Responses: with the id of the one before, and with the items of the conversation alone.
  const items = tools.map(({ function: { name, parameters } }) => ({ type: "function", name, parameters, strict: true }));
  for (const stored of [true, false]) {
    const first = await client.responses.create({ model: "w", input: task, tools: items });
    const calls = first.output.filter((item) => item.type === "function_call");
    assert.deepEqual(calls.map((call) => [call.name, call.arguments]), [["get_weather", '{"city":"Rome"}'], ["get_time", '{"city":"Rome"}']]);
    const results = calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "22 C" }));
    const input = stored ? results : [{ role: "user", content: task }, ...first.output, ...results];
    const stream = client.responses.stream({ model: "w", tools: items, input, ...(stored && { previous_response_id: first.id }) });
    assert.equal((await stream.finalResponse()).output_text, "It is sunny at noon.");
  }
  let argumentsOfCall = "";
  const calling = client.responses.stream({ model: "w", input: task, tools: items });
  calling.on("response.function_call_arguments.delta", (e) => (argumentsOfCall += e.delta));
  assert.equal((await calling.finalResponse()).output.length, 2);
  assert.equal(argumentsOfCall, '{"city":"Rome"}{"city":"Rome"}');

  // One function that must be called is an object.
  for (const choice of ["required", { type: "function", function: { name: "get_weather" } }]) {
    const { message } = (await client.chat.completions.create(say('@structured {"city":"Oslo"}', { tools: tools.slice(0, 1), tool_choice: choice }))).choices[0];
    assert.deepEqual([message.content, message.tool_calls[0].function.name, JSON.parse(message.tool_calls[0].function.arguments)], [null, "get_weather", { city: "Oslo" }]);
  }
}
