import { EventSourceParserStream } from "eventsource-parser/stream";
import type { components } from "../generated/parley.js";

type Schemas = components["schemas"];

/** What the `data` of each event holds. */
interface Data {
  open: Schemas["OpenData"];
  attachment_rejected: Schemas["AttachmentRejectedData"];
  text: Schemas["TextData"];
  reasoning: Schemas["ReasoningData"];
  tool_use: Schemas["ToolUseData"];
  tool_result: Schemas["ToolResultData"];
  input_required: Schemas["InputRequired"];
  tool_required: Schemas["ToolRequired"];
  connect_required: Schemas["ConnectRequired"];
  usage: Schemas["UsageData"];
  structured: Schemas["StructuredData"];
  attachment: Schemas["AttachmentData"];
  error: Schemas["ErrorData"];
  done: Schemas["DoneData"];
}

/** One frame of a stream with its `data` parsed. Its `event` says what its `data` is. */
export type Frame = { [E in Schemas["StreamFrame"]["event"]]: { event: E; id: string; data: Data[E] } }[Schemas["StreamFrame"]["event"]];

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
