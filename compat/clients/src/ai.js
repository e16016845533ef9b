// The AI SDK's chat, which useChat is made of, with its own transport.
import assert from "node:assert/strict";
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls, readUIMessageStream } from "ai";
import { careful, carefulTwice, clock, crash, expire, headers, id, long, longText, workspace } from "./common.js";

const transport = new DefaultChatTransport({ api: `${workspace}/ui/chat`, headers });

// Memory keeps a chat's messages, as React's state would.
class Memory {
  messages = [];
  status = "ready";
  error = undefined;
  pushMessage = (m) => (this.messages = [...this.messages, m]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (i, m) => (this.messages = this.messages.with(i, m));
  snapshot = (v) => structuredClone(v);
}

class Chat extends AbstractChat {
  constructor(init) {
    super({ transport, state: new Memory(), ...init });
  }
  get text() {
    return this.lastMessage.parts.filter((p) => p.type === "text").map((p) => p.text).join("");
  }
}

export async function ai() {
  const chat = new Chat({ id: id() });
  await chat.sendMessage({ text: "count to 5" });
  assert.deepEqual([chat.status, chat.text], ["ready", "1 2 3 4 5"]);
  const { session_id, turn_id } = chat.lastMessage.metadata;
  assert.equal(chat.lastMessage.id, turn_id);
  assert.ok(chat.lastMessage.parts.some((p) => p.type === "data-usage" && p.data.output_tokens > 0));
  await chat.sendMessage({ text: "@call grep {\"pattern\":\"x\"}\n@say Looked." });
  assert.equal(chat.lastMessage.metadata.session_id, session_id);
  assert.equal(chat.messages.length, 4);
  const tool = chat.lastMessage.parts.find((p) => p.type === "dynamic-tool");
  assert.deepEqual([tool.toolName, tool.state, tool.providerExecuted], ["grep", "output-available", true]);

  // The same chunks, read by the SDK's other reader.
  const stream = await transport.sendMessages({ chatId: id(), trigger: "submit-message", messages: [{ id: "1", role: "user", parts: [{ type: "text", text: "count to 3" }] }] });
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  assert.equal(last.parts.find((p) => p.type === "text").text, "1 2 3");

  // An approval is answered with the SDK's own call, and the answer goes by itself.
  for (const approved of [true, false]) {
    const asking = new Chat({ id: id(), sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await asking.sendMessage({ text: careful });
    const part = () => asking.lastMessage.parts.find((p) => p.type === "dynamic-tool");
    assert.deepEqual([part().state, part().toolName, asking.status], ["approval-requested", "wiki_write", "ready"]);
    assert.equal(part().input.content, "Trains first.");
    await asking.addToolApprovalResponse({ id: part().approval.id, approved });
    await until(() => asking.text.includes("The end."), () => asking.status !== "error");
    await until(() => asking.status === "ready");
    assert.equal(part().state, approved ? "output-available" : "output-denied");
    assert.equal(asking.lastMessage.parts.filter((p) => p.type === "dynamic-tool").length, 1);
    assert.equal(asking.messages.length, 2);
  }

  // Calls that are asked about together are answered one by one, and the answers go when all are there.
  for (const second of [true, false]) {
    const asking = new Chat({ id: id(), sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await asking.sendMessage({ text: carefulTwice });
    const parts = () => asking.lastMessage.parts.filter((p) => p.type === "dynamic-tool");
    const [a, b] = parts().map((p) => p.approval.id);
    await asking.addToolApprovalResponse({ id: a, approved: true });
    assert.deepEqual([asking.status, parts().map((p) => p.state)], ["ready", ["approval-responded", "approval-requested"]]);
    await asking.addToolApprovalResponse({ id: b, approved: second });
    await until(() => asking.text.includes("The end."), () => asking.status !== "error");
    await until(() => asking.status === "ready");
    const state = second ? "output-available" : "output-denied";
    assert.deepEqual(parts().map((p) => p.state), [state, state]);
  }

  await ownTools();

  // An approval without an answer is not denied.
  const unanswered = new Chat({ id: id() });
  await unanswered.sendMessage({ text: careful.replace("@say The end.", long) });
  await expire();
  await unanswered.resumeStream();
  const { state, errorText } = unanswered.lastMessage.parts.find((p) => p.type === "dynamic-tool");
  assert.deepEqual([state, errorText.startsWith("The approval was not answered within"), unanswered.messages.length], ["output-error", true, 2]);

  // A page that is loaded anew at a question has it on the screen, and answers it.
  const first = new Chat({ id: id() });
  await first.sendMessage({ text: careful });
  const reloaded = new Chat({ id: first.id, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  await reloaded.resumeStream();
  const asked = reloaded.lastMessage.parts.find((p) => p.type === "dynamic-tool");
  assert.deepEqual([asked.state, reloaded.status], ["approval-requested", "ready"]);

  // A message meanwhile is refused, and is not in the way of the answer.
  await reloaded.sendMessage({ text: "Are you there?" });
  assert.equal(JSON.parse(reloaded.error.message).error.code, "TURN_IN_PROGRESS");
  await reloaded.addToolApprovalResponse({ id: asked.approval.id, approved: true });
  await reloaded.sendMessage();
  assert.deepEqual([reloaded.status, reloaded.messages.map((m) => m.role)], ["ready", ["assistant", "user"]]);
  assert.equal(reloaded.messages[0].parts.find((p) => p.type === "dynamic-tool").state, "output-available");
  assert.equal(await transport.reconnectToStream({ chatId: first.id }), null);

  // A failed turn is an error, and the chat continues.
  await chat.sendMessage({ text: "@error model_error" });
  assert.deepEqual([chat.status, chat.error.message], ["error", "The script asked for this failure."]);
  chat.clearError();

  // A message that is sent again is one turn; to regenerate is another, with the same text.
  const request = { chatId: id(), trigger: "submit-message", messages: [{ id: id(), role: "user", parts: [{ type: "text", text: "count to 3" }] }] };
  const turns = new Set();
  for (const trigger of ["submit-message", "submit-message", "regenerate-message"]) {
    for await (const message of readUIMessageStream({ stream: await transport.sendMessages({ ...request, trigger }) })) turns.add(message.id);
  }
  assert.equal(turns.size, 2);
  await chat.sendMessage({ text: "count to 4" });
  const before = chat.lastMessage.id;
  await chat.regenerate();
  assert.deepEqual([chat.text, chat.lastMessage.id === before], ["1 2 3 4", false]);

  // To stop reads no further and stops nothing; the turn is canceled by its chat's name.
  const busy = new Chat({ id: id() });
  const told = busy.sendMessage({ text: "@text 1000 deltas of 12 bytes at 20/s" });
  await until(() => busy.messages.length > 1 && busy.text.length > 30);
  await busy.stop();
  await told;
  const rest = busy.resumeStream();
  await until(() => busy.status === "streaming");
  const canceled = await fetch(`${workspace}/ui/chat/${busy.id}/stream`, { method: "DELETE", headers });
  assert.deepEqual(await canceled.json(), { data: { canceled: true } });
  await rest;
  assert.deepEqual([busy.status, busy.messages.length], ["ready", 2]);

  // The server dies in the middle: the client comes back and has every piece once.
  assert.equal(await transport.reconnectToStream({ chatId: chat.id }), null);
  const lost = new Chat({ id: id() });
  const sending = lost.sendMessage({ text: long });
  await until(() => lost.messages.length > 1 && lost.text.length > 100);
  await crash();
  await sending;
  assert.ok(lost.text.length < longText.length, "the stream was cut off");
  await lost.resumeStream();
  assert.deepEqual([lost.status, lost.text, lost.messages.length], ["ready", longText, 2]);
}

// ownTools runs functions of the page: the transport sends their definitions, onToolCall runs them,
// and their results go by themselves.
async function ownTools() {
  const tools = [{ name: "get_weather", description: "The weather of a city.", input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }, { name: "get_time" }];
  const own = new DefaultChatTransport({ api: `${workspace}/ui/chat`, headers, body: { tools } });
  const ran = [];
  const page = (chatId) => {
    const chat = new Chat({
      id: chatId,
      transport: own,
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      async onToolCall({ toolCall }) {
        if (toolCall.dynamic) return;
        ran.push(toolCall.toolName);
        if (toolCall.toolName === "get_weather") chat.addToolOutput({ tool: "get_weather", toolCallId: toolCall.toolCallId, output: { celsius: 21, city: toolCall.input.city } });
        else chat.addToolOutput({ tool: "get_time", toolCallId: toolCall.toolCallId, state: "output-error", errorText: "The clock stands still." });
      },
    });
    return chat;
  };
  const chat = page(id());
  await chat.sendMessage({ text: '@say I look.\n@call get_weather {"city":"Paris"} grep {"pattern":"x"}\n@call get_time {}\n@say The end.' });
  await until(() => chat.status === "ready" && chat.text.includes("The end."), () => chat.status !== "error");
  const parts = chat.lastMessage.parts.filter((p) => p.type === "dynamic-tool" || p.type.startsWith("tool-"));
  assert.deepEqual(parts.map((p) => [p.type, p.state]), [["dynamic-tool", "output-available"], ["tool-get_weather", "output-available"], ["tool-get_time", "output-error"]]);
  assert.deepEqual([parts[1].input, parts[1].output], [{ city: "Paris" }, { celsius: 21, city: "Paris" }]);
  assert.deepEqual([ran, chat.messages.length], [["get_weather", "get_time"], 2]);

  // A page that is loaded anew while a call waits runs it, and one that comes later does not.
  const left = new Chat({ id: id(), transport: own });
  await left.sendMessage({ text: clock });
  assert.deepEqual([left.status, left.lastMessage.parts.at(-1).state], ["ready", "input-available"]);
  const again = page(left.id);
  await again.resumeStream();
  await until(() => again.status === "ready" && again.text.includes("The end."), () => again.status !== "error");
  assert.deepEqual(ran.slice(2), ["get_time"]);

  // A result for a call of another chat is refused.
  const asked = new Chat({ id: id(), transport: own });
  await asked.sendMessage({ text: clock });
  const forged = new Chat({ id: id(), transport: own, messages: [] });
  await forged.sendMessage({ text: clock });
  forged.messages = [forged.messages[0], { ...forged.lastMessage, parts: [{ ...asked.lastMessage.parts.at(-1), state: "output-available", output: 1 }] }];
  await forged.sendMessage();
  assert.equal(JSON.parse(forged.error.message).error.code, "TOOL_CALL_NOT_FOUND");

  // stop() of a transport that cancels ends the turn.
  const cancels = new DefaultChatTransport({
    api: `${workspace}/ui/chat`,
    headers,
    fetch: (url, init) => {
      const { id: chatId } = init.body ? JSON.parse(init.body) : {};
      init.signal?.addEventListener("abort", () => fetch(`${workspace}/ui/chat/${chatId}/stream`, { method: "DELETE", headers, keepalive: true }).catch(() => {}));
      return fetch(url, init);
    },
  });
  const stopped = new Chat({ id: id(), transport: cancels });
  const sending = stopped.sendMessage({ text: "@text 1000 deltas of 12 bytes at 20/s" });
  await until(() => stopped.messages.length > 1 && stopped.text.length > 30);
  await stopped.stop();
  await sending;
  const rest = await transport.reconnectToStream({ chatId: stopped.id });
  if (rest) for await (const _ of rest) continue; // until the turn has ended
  const { data } = await (await fetch(`${workspace}/sessions/${stopped.lastMessage.metadata.session_id}/messages`, { headers })).json();
  assert.deepEqual([data.at(-1).role, data.at(-1).status], ["assistant", "canceled"]);
}

// until waits for what a stream brings.
async function until(ok, fine = () => true) {
  while (!ok()) {
    assert.ok(fine(), "the chat has failed");
    await new Promise((r) => setTimeout(r, 5));
  }
}
