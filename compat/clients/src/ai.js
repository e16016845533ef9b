// The AI SDK's chat, which useChat is made of, with its own transport.
import assert from "node:assert/strict";
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, readUIMessageStream } from "ai";
import { careful, crash, headers, id, long, longText, workspace } from "./common.js";

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

  // A failed turn is an error, and the chat goes on.
  await chat.sendMessage({ text: "@error model_error" });
  assert.equal(chat.status, "error");
  chat.clearError();

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

// until waits for what a stream brings.
async function until(ok, fine = () => true) {
  while (!ok()) {
    assert.ok(fine(), "the chat has failed");
    await new Promise((r) => setTimeout(r, 5));
  }
}
