// Writes accepted/zod*.json and refused/zod*.json with zod 4.6 (its own JSON Schemas,
// and those of its version 3 by zod-to-json-schema 3.25):
//
//   npm install zod@4.6.7 zod-to-json-schema@3.25.2 && node make_zod.mjs
import fs from "node:fs";
import * as z4 from "zod";
import * as z3 from "zod/v3";
import { zodToJsonSchema } from "zod-to-json-schema";

const write = (name, schema, dir = "accepted") =>
  fs.writeFileSync(`${dir}/${name}.json`, JSON.stringify(schema, null, 1) + "\n");

function models(z) {
  const address = z.object({ street: z.string().min(1), zip: z.string().regex(/^\d{5}$/) });
  const tree = z.object({ value: z.number().int(), children: z.array(z.lazy(() => tree)) });
  return {
    order: z.object({
      id: z.string().uuid(), email: z.string().email(), url: z.string().url().optional(), at: z.string().datetime(),
      billing: address, shipping: address.nullable().describe("Where to"),
      status: z.enum(["open", "paid"]).default("open"),
      qty: z.number().int().min(1).max(99), step: z.number().multipleOf(5).optional(),
      tags: z.array(z.string()).max(3).optional(), point: z.tuple([z.number(), z.number()]),
      extra: z.record(z.string(), z.number()), mixed: z.union([z.string(), z.number(), z.null()]),
      flag: z.literal(true), any: z.any(), unknown: z.unknown(), nothing: z.null(),
      word: z.string().startsWith("a").endsWith("z").includes("m"),
    }),
    strict: z.object({ a: z.string(), inner: z.object({ a: z.number(), b: z.boolean() }).strict() }).strict(),
    tree,
    shape: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("circle"), radius: z.number().positive() }),
      z.object({ kind: z.literal("square"), side: z.number().gte(0).lt(100) }),
    ]),
    both: z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })),
    rest: z.tuple([z.string()]).rest(z.number()),
    loose: z.object({ a: z.string() }).passthrough(),
    catchall: z.object({ a: z.string() }).catchall(z.number()),
    list: z.array(z.object({ name: z.string() })),
  };
}

for (const [name, model] of Object.entries(models(z4))) {
  write(`zod4-${name}`, z4.toJSONSchema(model));
}
for (const [name, model] of Object.entries(models(z3))) {
  write(`zod3-${name}`, zodToJsonSchema(model));
}
for (const name of ["order", "tree", "both", "rest"]) {
  write(`zod3-${name}-named`, zodToJsonSchema(models(z3)[name], { name: "My", target: "jsonSchema2019-09" }));
}
for (const name of ["order", "tree", "shape"]) {
  write(`zod3-${name}-openai`, zodToJsonSchema(models(z3)[name], { target: "openAi" }));
}
for (const name of ["order", "tree"]) {
  write(`zod4-${name}-input`, z4.toJSONSchema(models(z4)[name], { io: "input", target: "draft-7" }));
}
write("zod4-reused", z4.toJSONSchema(models(z4).order, { reused: "ref" }));

const person = z4.object({ name: z4.string(), get friends() { return z4.array(person); } });
write("zod4-getter", z4.toJSONSchema(person));

const formats = z4.object({
  email: z4.email(), uuid: z4.uuid(), url: z4.url(), date: z4.iso.date(), time: z4.iso.time(), at: z4.iso.datetime(),
  ipv4: z4.ipv4(), ipv6: z4.ipv6(), cidr: z4.cidrv4(), base64: z4.base64(), base64url: z4.base64url(), e164: z4.e164(),
  nanoid: z4.nanoid(), cuid: z4.cuid(), cuid2: z4.cuid2(), ulid: z4.ulid(), jwt: z4.jwt(), hostname: z4.hostname(),
  int32: z4.int32(), float32: z4.float32(), template: z4.templateLiteral(["v", z4.number()]),
  record: z4.record(z4.enum(["a", "b"]), z4.number()), partial: z4.partialRecord(z4.enum(["a", "b"]), z4.number()),
  either: z4.string().or(z4.number()), nullish: z4.string().nullish(), lower: z4.string().lowercase(),
});
write("zod4-formats", z4.toJSONSchema(formats));
write("zod4-formats-draft7", z4.toJSONSchema(formats, { target: "draft-7" }));

write("zod4-emoji", z4.toJSONSchema(z4.object({ e: z4.emoji() })), "refused");
write("zod4-duration", z4.toJSONSchema(z4.object({ d: z4.iso.duration() })), "refused");
