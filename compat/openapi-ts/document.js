// Fetches the document that a server serves.
import { mkdir, writeFile } from "node:fs/promises";

const url = `${process.env.PARLEY_URL ?? "http://127.0.0.1:8080"}/api/v1/openapi`;
const response = await fetch(url);
if (!response.ok) throw new Error(`${url} answers ${response.status}`);
await mkdir("generated", { recursive: true });
await writeFile("generated/openapi.json", await response.text());
