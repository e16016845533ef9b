// A callback, verified with the library of Standard Webhooks.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { post } from "./common.js";

const { PARLEY_HOOK_PORT: port, PARLEY_HOOK_SECRET: secret } = process.env;

export async function webhooks() {
  const receiver = createServer().listen(Number(port), "127.0.0.1");
  await once(receiver, "listening");
  const accepted = await post({ command: "Say “Grüße”.", callback: `http://hook.example:${port}/` });
  assert.equal(accepted.status, 202);
  const [req, res] = await once(receiver, "request");
  const body = Buffer.concat(await req.toArray()).toString();
  res.end();
  const webhook = new Webhook(secret);
  const report = webhook.verify(body, req.headers);
  const { data } = await accepted.json();
  assert.deepEqual([report.type, report.data.session_id, report.data.turn_id], ["turn.completed", data.session_id, data.turn_id]);
  assert.throws(() => webhook.verify(body.replace("turn.completed", "turn.canceled"), req.headers), WebhookVerificationError);
  receiver.close();
}
