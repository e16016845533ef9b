// Fetches the document that a server gives out and checks that it is one.
import { mkdir, writeFile } from "node:fs/promises";
import SwaggerParser from "@apidevtools/swagger-parser";

const url = `${process.env.PARLEY_URL ?? "http://127.0.0.1:8080"}/api/v1/openapi`;
const response = await fetch(url);
if (!response.ok) throw new Error(`${url} answers ${response.status}`);
const document = await response.json();
await SwaggerParser.validate(structuredClone(document));
await mkdir("generated", { recursive: true });
await writeFile("generated/openapi.json", JSON.stringify(document, null, 2));
console.log(`${document.info.title} ${document.info.version}: ${Object.keys(document.paths).length} paths`);
