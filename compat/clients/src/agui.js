// The HttpAgent of AG-UI, which CopilotKit and others are made of.
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { careful, clock, crash, expire, headers, id, long, longText, workspace } from "./common.js";

const open = (threadId = id()) => new HttpAgent({ url: `${workspace}/ag-ui`, headers, threadId });
const say = (agent, content) => agent.addMessage({ id: id(), role: "user", content });
const text = (agent) => agent.messages.filter((m) => m.role === "assistant" && m.content).map((m) => m.content).join("");

export async function agui() {
  const agent = open();
  say(agent, "count to 5");
  const events = [];
  await agent.runAgent({}, { onEvent: ({ event }) => void events.push(event.type) });
  assert.equal(text(agent), "1 2 3 4 5");
  assert.deepEqual([events[0], events.at(-1)], ["RUN_STARTED", "RUN_FINISHED"]);
  say(agent, '@call grep {"pattern":"x"}\n@say Looked.');
  const { newMessages } = await agent.runAgent();
  assert.deepEqual(newMessages.map((m) => m.role), ["assistant", "tool", "assistant"]);

  // An approval interrupts the run; the next one answers it.
  for (const approved of [true, false]) {
    const asking = open();
    say(asking, careful);
    await asking.runAgent();
    const [interrupt] = asking.pendingInterrupts;
    assert.deepEqual([interrupt.reason, interrupt.metadata.operations[0].tool], ["tool_call", "wiki_write"]);
    assert.ok(new Date(interrupt.expiresAt) > new Date());
    await asking.runAgent({ resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved } }] });
    assert.equal(asking.pendingInterrupts.length, 0);
    assert.match(text(asking), /I save it\.The end\./);
    assert.match(asking.messages.find((m) => m.role === "tool").content, approved ? /./ : /This was denied/);
  }

  // A new agent on a thread that waits has the interrupt, and is refused with anything else.
  let code;
  const onRunErrorEvent = ({ event }) => void (code = event.code);
  const asks = open();
  say(asks, careful);
  await asks.runAgent();
  const attached = open(asks.threadId);
  await attached.runAgent();
  assert.deepEqual(attached.pendingInterrupts.map((i) => i.id), asks.pendingInterrupts.map((i) => i.id));
  const other = open(asks.threadId);
  say(other, "count to 3");
  await other.runAgent({}, { onRunErrorEvent }).catch(() => {});
  assert.equal(code, "TURN_IN_PROGRESS");

  // What is said beside an answer is answered behind it, or, where the interrupt is given up, in its place.
  say(attached, "count to 3");
  await attached.runAgent({ resume: [{ interruptId: attached.pendingInterrupts[0].id, status: "resolved", payload: { approved: true } }] });
  assert.equal(text(attached), "I save it.The end.1 2 3");
  const steered = open();
  say(steered, careful);
  await steered.runAgent();
  say(steered, "count to 4");
  await steered.runAgent({ resume: [{ interruptId: steered.pendingInterrupts[0].id, status: "cancelled" }] });
  assert.deepEqual([text(steered), steered.pendingInterrupts.length], ["I save it.1 2 3 4", 0]);

  await ownTools();

  // A secret is asked for until it is there, or given up.
  const secret = open();
  say(secret, '@call request_secret {"key_name":"API_TOKEN","reason":"to look"}\n@say Without it.');
  await secret.runAgent();
  const [needed] = secret.pendingInterrupts;
  assert.deepEqual([needed.reason, needed.metadata.key_name], ["input_required", "API_TOKEN"]);
  await secret.runAgent({ resume: [{ interruptId: needed.id, status: "resolved" }] });
  assert.equal(secret.pendingInterrupts[0].id, needed.id);
  await secret.runAgent({ resume: [{ interruptId: needed.id, status: "cancelled" }] });
  assert.deepEqual([text(secret), secret.pendingInterrupts.length], ["Without it.", 0]);

  // What cannot be answered any more ends the run with an error.
  const allow = (agent, interruptId) => agent.runAgent({ resume: [{ interruptId, status: "resolved", payload: { approved: true } }] }, { onRunErrorEvent }).catch(() => {});
  const late = open();
  say(late, careful);
  await late.runAgent();
  await expire();
  await allow(late, late.pendingInterrupts[0].id);
  assert.equal(code, "APPROVAL_EXPIRED");
  await allow(open(), id());
  assert.equal(code, "APPROVAL_NOT_FOUND");
  say(agent, "@error model_error");
  await agent.runAgent({}, { onRunErrorEvent }).catch(() => {});
  assert.equal(code, "model_error");

  // An agent that comes back to its turn has all of it once, and a message that is sent again is one turn.
  const back = open();
  say(back, '@call grep {"pattern":"x"}\n@text 100 deltas of 12 bytes at 100/s');
  await back.runAgent({}, { onTextMessageContentEvent: () => back.abortRun() });
  assert.deepEqual(back.messages.map((m) => m.role), ["user", "assistant", "tool", "assistant"]);
  await back.runAgent();
  assert.deepEqual([back.messages.map((m) => m.role), text(back).length], [["user", "assistant", "tool", "assistant"], 1200]);
  assert.deepEqual(back.messages[1].toolCalls.map((c) => JSON.parse(c.function.arguments).summary.length > 0), [true]);
  const twice = open(back.threadId);
  twice.addMessage(back.messages[0]);
  await twice.runAgent();
  assert.equal(text(twice), text(back));

  // An answer whose run broke off is sent again, and all of the rest is there once.
  const torn = open();
  say(torn, `${careful}\n@text 100 deltas of 12 bytes at 100/s`);
  await torn.runAgent();
  const resume = [{ interruptId: torn.pendingInterrupts[0].id, status: "resolved", payload: { approved: true } }];
  let deltas = 0;
  await torn.runAgent({ resume }, { onTextMessageContentEvent: () => void (++deltas === 5 && torn.abortRun()) });
  assert.equal(torn.pendingInterrupts.length, 1);
  await torn.runAgent({ resume });
  assert.deepEqual([text(torn).length, torn.pendingInterrupts.length], ["I save it.The end.".length + 1200, 0]);
  assert.equal(torn.messages.filter((m) => m.role === "tool").length, 1);

  // The server dies in the middle: a new agent on the thread is told the whole turn.
  const lost = open();
  say(lost, long);
  let seen = 0;
  const running = lost.runAgent({}, { onTextMessageContentEvent: () => void seen++ });
  running.catch(() => {});
  while (seen < 10) await new Promise((r) => setTimeout(r, 5));
  const nowhere = () => {}; // the client's transport rejects once more where nobody can hear it
  process.on("unhandledRejection", nowhere);
  await crash();
  await assert.rejects(running);
  const again = open(lost.threadId);
  await again.runAgent();
  assert.equal(text(again), longText);
  process.off("unhandledRejection", nowhere);
}

// ownTools runs functions of the client: a run ends with their calls, and the next one brings the
// results.
async function ownTools() {
  const tools = [
    { name: "get_weather", description: "The weather of a city.", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } },
    { name: "get_time", description: "The time.", parameters: { type: "object", properties: {} } },
  ];
  const results = { get_weather: ({ city }) => `21 degrees in ${city}`, get_time: () => "12:00" };
  const answer = (agent) => {
    const had = new Set(agent.messages.filter((m) => m.role === "tool").map((m) => m.toolCallId));
    const open = agent.messages.flatMap((m) => m.toolCalls ?? []).filter((c) => !had.has(c.id));
    for (const c of open) agent.addMessage({ id: id(), role: "tool", toolCallId: c.id, content: results[c.function.name](JSON.parse(c.function.arguments)) });
    return open.map((c) => c.function.name);
  };
  const agent = open();
  say(agent, '@say I look.\n@call get_weather {"city":"Paris"} grep {"pattern":"x"}\n@call get_time {}\n@say The end.');
  const ran = [];
  do await agent.runAgent({ tools });
  while (ran.push(...answer(agent)) < 2 || !text(agent).includes("The end."));
  assert.deepEqual(ran, ["get_weather", "get_time"]);
  assert.deepEqual(agent.messages.map((m) => m.role), ["user", "assistant", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"]);
  assert.equal(agent.messages.find((m) => m.role === "tool" && m.content.includes("degrees")).content, "21 degrees in Paris");

  // A run that broke off after the results is repeated, and everything is there once.
  const torn = open();
  say(torn, `${clock}\n@text 40 deltas of 12 bytes at 100/s`);
  await torn.runAgent({ tools });
  answer(torn);
  let deltas = 0;
  await torn.runAgent({ tools }, { onTextMessageContentEvent: () => void (++deltas === 5 && torn.abortRun()) });
  await torn.runAgent({ tools });
  assert.equal(text(torn).length, "The end.".length + 480);
  assert.equal(torn.messages.filter((m) => m.role === "tool").length, 1);

  let code;
  const forged = open();
  say(forged, clock);
  await forged.runAgent({ tools });
  forged.addMessage({ id: id(), role: "tool", toolCallId: id(), content: "12:00" });
  await forged.runAgent({ tools }, { onRunErrorEvent: ({ event }) => void (code = event.code) }).catch(() => {});
  assert.equal(code, "TOOL_CALL_NOT_FOUND");
}
