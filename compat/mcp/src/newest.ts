// The client of the revision 2026-07-28, in which a result can ask for an approval.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Call, asking, conversation, headers, read, url } from "./story.js";

const client = new Client(
  { name: "example", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
const asked: string[] = [];
client.setRequestHandler("elicitation/create", async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision: "allow" } };
});
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: headers("PARLEY_API_KEY") } }));
assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
assert.equal((await client.listTools()).tools.length, 11);

const call: Call = async (name, args, progress) =>
  read(await client.callTool({ name, arguments: args }, progress ? { onprogress: (p) => progress(p.message ?? "") } : undefined));

await conversation(call);

const written = await call("send_message", { command: asking("newest") });
assert.equal(written.told.output, "It is written.");
assert.equal(asked.length, 1);
assert(asked[0]?.includes("wiki_write"), `the person was asked: ${asked[0]}`);
await client.close();
console.log("The clients have ended well.");
