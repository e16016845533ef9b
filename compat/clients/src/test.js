// Every client against one server. PARLEY_URL, PARLEY_API_KEY and PARLEY_CONTROL_URL say where.
import { agui } from "./agui.js";
import { ai } from "./ai.js";
import { eventsource, fetched, parser } from "./events.js";
import { openai } from "./openai.js";
import { webhooks } from "./webhooks.js";

for (const client of [openai, parser, fetched, eventsource, ai, agui, webhooks]) {
  const began = Date.now();
  await client();
  console.log(`${client.name}: ${Date.now() - began} ms`);
}
console.log("The clients have ended well.");
process.exit(0); // some keep connections
