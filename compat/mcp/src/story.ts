import assert from "node:assert/strict";

/** What the result of a tool has, as far as this example looks at it. */
export interface Told {
  success?: boolean;
  output?: string | null;
  session_id?: string;
  error?: string | null;
  input_required?: { kind: string; approval_id: string };
  status?: string;
  canceled?: boolean;
  reason?: string;
  outcome?: Told;
  data?: { session_id: string; status: string }[];
  fault?: { code: string; message: string; required_scope?: string };
}

/** How a client calls a tool. */
export type Call = (name: string, args: Record<string, unknown>, progress?: (message: string) => void) => Promise<{ told: Told; failed: boolean }>;

export const url = new URL("/mcp", process.env.PARLEY_URL ?? "http://localhost:8080");

/** The headers of a request with a key. */
export function headers(variable: "PARLEY_API_KEY" | "PARLEY_READ_KEY"): { Authorization: string } {
  const key = process.env[variable];
  assert(key, `set ${variable}`);
  return { Authorization: `Bearer ${key}` };
}

/** The content of a result. */
export function read(result: { [name: string]: unknown }): { told: Told; failed: boolean } {
  return { told: result.structuredContent as Told, failed: result.isError === true };
}

/** A command that makes the offline model ask before it writes. */
export const asking = (page: string) => `@say I would write it.\n@call wiki_write {"page":"${page}","content":"x"}\n@say It is written.`;

/** A conversation with an answer, a mistake and a cancel, and what came of it. */
export async function conversation(call: Call): Promise<void> {
  const messages: string[] = [];
  const hello = await call("send_message", { command: "@say Hello.\n@call wiki_read {\"page\":\"none\"}\n@say Bye." }, (message) => messages.push(message));
  assert.equal(hello.told.output, "Bye.");
  assert(messages[0]?.includes(hello.told.session_id ?? "-"), `the first progress names the session: ${messages[0]}`);
  assert(messages.some((message) => message.includes("\n> wiki_read")), `progress tells of tools: ${messages}`);

  const again = await call("send_message", { command: "@say Again.", session_id: hello.told.session_id });
  assert.equal(again.told.session_id, hello.told.session_id);

  const wrong = await call("send_message", { skill: "nothing" });
  assert(wrong.failed);
  assert.equal(wrong.told.fault?.code, "UNKNOWN_SKILL");

  const caller = `cancel-${crypto.randomUUID()}`;
  let began: () => void;
  const running = new Promise<void>((resolve) => (began = resolve));
  const long = call("send_message", { command: "@say Slowly.\n@wait 10m", caller_id: caller }, (message) => message.endsWith("\n> Slowly.") && began());
  await running;
  const list = await call("list_sessions", { caller_id: caller });
  assert.equal(list.told.data?.[0]?.status, "thinking");
  const session = list.told.data[0].session_id;
  const canceled = await call("cancel_session", { session_id: session });
  assert.equal(canceled.told.canceled, true);
  const ended = await long;
  assert(ended.failed);
  assert.equal(ended.told.error, "canceled");
  const nothing = await call("cancel_session", { session_id: session });
  assert.equal(nothing.told.reason, "not_in_progress");
}
