// A tool server with the official SDK. It prints its address. Its sessions share the customers.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const customers = new Map([["7", "Ada"]]);
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
let description = "Find a customer by id.";
let renamed = 0;

function customerServer() {
  const server = new McpServer({ name: "customers", version: "1.0.0" });
  const find = server.registerTool(
    "find",
    { description, inputSchema: { id: z.string() }, outputSchema: { id: z.string(), name: z.string() }, annotations: { readOnlyHint: true } },
    ({ id }) => {
      const found = { id, name: customers.get(id) ?? "" };
      return { content: [{ type: "text", text: JSON.stringify(found) }], structuredContent: found };
    },
  );
  server.registerTool("rename", { description: "Rename a customer.", inputSchema: { id: z.string(), name: z.string() } }, ({ id, name }) => {
    customers.set(id, name);
    return { content: [{ type: "text", text: `renamed ${++renamed} times` }] };
  });
  server.registerTool("picture", { description: "Show a customer.", annotations: { readOnlyHint: true } }, () => ({
    content: [{ type: "image", data: pixel, mimeType: "image/png" }],
  }));
  server.registerTool("describe", { description: "Change the description of find.", inputSchema: { text: z.string() } }, ({ text }) => {
    description = text;
    find.update({ description }); // notifies the session
    return { content: [{ type: "text", text: "described" }] };
  });
  return server;
}

const sessions = new Map();

/** The transport of a request's session; a first request opens one. */
async function transportOf(req, body) {
  const known = sessions.get(req.headers["mcp-session-id"]);
  if (known || !isInitializeRequest(body)) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await customerServer().connect(transport);
  return transport;
}

async function bodyOf(req) {
  const parts = [];
  for await (const part of req) parts.push(part);
  return parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
}

const http = createServer(async (req, res) => {
  const body = await bodyOf(req);
  const transport = await transportOf(req, body);
  if (transport) return transport.handleRequest(req, res, body);
  res.writeHead(req.headers["mcp-session-id"] ? 404 : 400).end();
});
http.listen(0, "127.0.0.1", () => console.log(`http://localhost:${http.address().port}/mcp`));
