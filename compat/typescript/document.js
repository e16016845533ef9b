// Fetches the document that a server gives out and checks that it is one, and that Postman can
// take every operation of it.
import { mkdir, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import SwaggerParser from "@apidevtools/swagger-parser";
import Postman from "openapi-to-postmanv2";

const url = `${process.env.PARLEY_URL ?? "http://127.0.0.1:8080"}/api/v1/openapi`;
const response = await fetch(url);
if (!response.ok) throw new Error(`${url} answers ${response.status}`);
const document = await response.json();
await SwaggerParser.validate(structuredClone(document));

const { result, reason, output } = await promisify(Postman.convertV2)({ type: "json", data: structuredClone(document) }, {});
if (!result) throw new Error(`the converter to Postman says: ${reason}`);
const requests = (items) => items.flatMap((item) => (item.item ? requests(item.item) : item.request.method));
const operations = Object.values(document.paths).flatMap((path) => Object.keys(path).filter((key) => ["get", "post", "put", "patch", "delete"].includes(key)));
const taken = requests(output[0].data.item).length;
if (taken !== operations.length) throw new Error(`of ${operations.length} operations Postman has ${taken}`);

await mkdir("generated", { recursive: true });
await writeFile("generated/openapi.json", JSON.stringify(document, null, 2));
console.log(`${document.info.title} ${document.info.version}: ${Object.keys(document.paths).length} paths, ${taken} requests in Postman`);
