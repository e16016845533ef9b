// Runs the protocol's conformance suite against the server, through a proxy that sends the key:
// the suite knows none.
import { spawn } from "node:child_process";
import { request, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { headers, url } from "./story.js";

const major = Number(process.versions.node.split(".")[0]);
if (major < 22) {
  console.log(`Skipped: the conformance suite needs Node.js 22, and this is ${process.versions.node}.`);
  process.exit();
}
const proxy = createServer((incoming, answer) => {
  const onward = request(
    { host: url.hostname, port: url.port, path: incoming.url, method: incoming.method, headers: { ...incoming.headers, ...headers("PARLEY_API_KEY") } },
    (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    },
  );
  onward.on("error", () => answer.destroy());
  answer.on("close", () => onward.destroy());
  incoming.pipe(onward);
});
await new Promise<void>((resolve) => proxy.listen(0, "localhost", resolve));
const { port } = proxy.address() as AddressInfo;
const suite = spawn(
  process.execPath,
  ["node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", `http://localhost:${port}/mcp`, "--suite", "all", "--expected-failures", "expected-failures.yaml"],
  { stdio: "inherit" },
);
process.exitCode = await new Promise<number>((resolve) => suite.on("exit", (code) => resolve(code ?? 1)));
proxy.close();
proxy.closeAllConnections();
