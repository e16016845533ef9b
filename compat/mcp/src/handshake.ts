// The client of the revisions up to 2025-11-25, which begin with a handshake.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { type Call, asking, conversation, headers, read, url } from "./story.js";

async function connect(key: "PARLEY_API_KEY" | "PARLEY_READ_KEY"): Promise<Client> {
  const client = new Client({ name: "example", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: headers(key) } }));
  return client;
}

const client = await connect("PARLEY_API_KEY");
const { tools } = await client.listTools(); // from here on the client checks results against their schemas
assert.equal(tools.length, 11);
assert(tools.every((tool) => tool.title && tool.description && tool.outputSchema && tool.annotations));

const call: Call = async (name, args, progress) =>
  read(await client.callTool({ name, arguments: args }, undefined, progress ? { onprogress: (p) => progress(p.message ?? "") } : undefined));

await conversation(call);

const question = await call("send_message", { command: asking("handshake") });
assert.equal(question.told.error, "input_required");
assert.equal(question.told.input_required?.kind, "approval");
const decided = await call("decide_approval", { approval_id: question.told.input_required.approval_id, decision: "allow", wait: true });
assert.equal(decided.told.status, "allowed");
assert.equal(decided.told.outcome?.output, "It is written.");
await client.close();

const reader = await connect("PARLEY_READ_KEY");
const names = (await reader.listTools()).tools.map((tool) => tool.name);
assert(!names.includes("send_message") && !names.includes("save_wiki") && names.includes("get_messages"), `a reader sees ${names}`);
const refused = read(await reader.callTool({ name: "send_message", arguments: { command: "x" } }));
assert.equal(refused.told.fault?.code, "INSUFFICIENT_SCOPE");
assert.equal(refused.told.fault.required_scope, "mcp");
await reader.close();

const nobody = new Client({ name: "example", version: "1.0.0" });
await assert.rejects(nobody.connect(new StreamableHTTPClientTransport(url)), /MISSING_API_KEY/);
console.log("The client of the handshake has ended well.");
