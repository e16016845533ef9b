import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "../generated/parley.js";
import { type Body, type Frame, frames } from "./frames.js";

type Schemas = components["schemas"];

/** An error that the service told. `failure.code` is for programs, the message for people. */
export class Refused extends Error {
  constructor(
    readonly failure: Schemas["ErrorResponse"]["error"],
    readonly requestId: string,
  ) {
    super(failure.message);
  }
}

/** What a call comes back with. */
interface Outcome<T> {
  data?: T | null;
  error?: Schemas["ErrorResponse"];
}

/** The data of an outcome; its error is thrown. */
export function value<T>({ data, error }: Outcome<T>): T {
  if (error) throw new Refused(error.error, error.request_id);
  if (!data) throw new Error("the answer has no body");
  return data;
}

/** A client of one workspace: `api` has every operation, the methods put broken streams together again. */
export class Parley {
  readonly api: Client<paths>;

  constructor(
    baseUrl: string,
    key: string,
    readonly workspace: string,
  ) {
    this.api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
  }

  /** Sends a message and yields what its turn says, up to `done`. However often it is sent, it is one turn. */
  async *send(message: Schemas["MessageRequest"]): AsyncGenerator<Frame, void> {
    const once = { "Idempotency-Key": crypto.randomUUID() };
    yield* unbroken(undefined, (cursor) =>
      this.api.POST("/api/v1/workspaces/{id}/messages", {
        params: { path: { id: this.workspace }, header: cursor === undefined ? once : { ...once, "Last-Event-ID": cursor } },
        body: message,
        parseAs: "stream",
      }),
    );
  }

  /** Yields what the session says after the cursor, which is the `id` of the last frame you have, up to `done`. */
  async *resume(sessionId: string, cursor: string): AsyncGenerator<Frame, void> {
    yield* unbroken(cursor, (cursor = "0") =>
      this.api.GET("/api/v1/workspaces/{id}/sessions/{sessionId}/events", {
        params: { path: { id: this.workspace, sessionId }, header: { "Last-Event-ID": cursor }, query: { replay: "all" } },
        parseAs: "stream",
      }),
    );
  }
}

/** Reads a stream and opens it again after a drop, five times in a row at most. */
async function* unbroken(
  cursor: string | undefined,
  open: (cursor: string | undefined) => Promise<Outcome<Body>>,
): AsyncGenerator<Frame, void> {
  for (let drops = 0; ; drops++) {
    try {
      for await (const frame of frames(value(await open(cursor)))) {
        if (frame.event !== "open") drops = 0;
        cursor = frame.id;
        yield frame;
        if (frame.event === "done") return;
      }
    } catch (error) {
      const wait = error instanceof Refused ? error.failure.retry_after : 2 ** drops / 4;
      if (wait === undefined || drops === 5) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    }
  }
}
