// Sends a message, lists sessions and reads an error with the generated client.
import { randomUUID } from "node:crypto";
import { client } from "./client/client.gen.js";
import { listMessages, listSessions, sendMessage } from "./client/sdk.gen.js";

const id = process.env.PARLEY_WORKSPACE ?? "demo";
client.setConfig({ baseUrl: process.env.PARLEY_URL ?? "http://127.0.0.1:8080", auth: () => process.env.PARLEY_API_KEY });

const sent = await sendMessage({ path: { id }, body: { command: "How much is 12*7+3?", stream: false } });
if (!sent.data || !("output" in sent.data)) throw new Error(JSON.stringify(sent.error));
const answer = sent.data;
if (!answer.output?.includes("87")) throw new Error(JSON.stringify(answer));

const sessions = await listSessions({ path: { id }, query: { limit: 5 } });
if (!sessions.data?.data.some((session) => session.session_id === answer.session_id)) throw new Error(JSON.stringify(sessions.error));

const missing = await listMessages({ path: { id, sessionId: randomUUID() } });
const code: string | undefined = missing.error?.error?.code;
if (missing.response?.status !== 404 || code !== "SESSION_NOT_FOUND") throw new Error(JSON.stringify(missing.error));

console.log("The generated client works.");
