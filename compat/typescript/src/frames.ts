import { EventSourceParserStream } from "eventsource-parser/stream";
import type { components } from "../generated/parley.js";

/** One frame of a stream. Its `event` says what its `data` is. */
export type Frame = components["schemas"]["StreamFrame"];

/** The body of a stream, as fetch gives it. */
export type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Reads the body of a stream. It ends after `done`; a connection that breaks before is an error. */
export async function* frames(body: Body): AsyncGenerator<Frame, void> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { event, id, data } of events) {
    yield { event, id, data: JSON.parse(data) } as Frame;
    if (event === "done") return;
  }
  throw new Error("the stream ended without done");
}
