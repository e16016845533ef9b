// Every client against one server. PARLEY_URL, PARLEY_API_KEY and PARLEY_CRASH_URL say where.
import { agui } from "./agui.js";
import { ai } from "./ai.js";
import { eventsource, parser } from "./events.js";
import { openai } from "./openai.js";

for (const client of [openai, parser, eventsource, ai, agui]) {
  const began = Date.now();
  await client();
  console.log(`${client.name}: ${Date.now() - began} ms`);
}
console.log("The clients have ended well.");
process.exit(0); // some keep connections
