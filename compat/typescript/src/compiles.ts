// What the types of the document say, held by the compiler; nothing here runs.
import type { components, operations, paths, webhooks } from "../generated/parley.js";
import type { Frame } from "./frames.js";

type Schemas = components["schemas"];

/** `event` narrows `data`. */
export function frame(f: Frame): string | number | undefined {
  // @ts-expect-error: not every frame is a text
  f.data.text;
  // @ts-expect-error: there is no such event
  if (f.event === "txt") return;
  if (f.event === "tool_result") {
    // @ts-expect-error: a result is no text
    f.data.text;
    // @ts-expect-error: of an output that was not cut there is no `truncated`
    f.data.truncated satisfies boolean;
    return f.data.output;
  }
  if (f.event === "open") {
    // @ts-expect-error: `open` has no schema version
    f.data.v;
    return f.data.from_seq;
  }
  f.data.v satisfies 1;
  return;
}

/** `kind` narrows what a turn asks. */
export function request(r: Schemas["InputRequired"]): string {
  // @ts-expect-error: a secret request has no operations
  r.operations;
  // @ts-expect-error: there is no such kind
  if (r.kind === "question") return "";
  return r.kind === "approval" ? r.decide_url : r.secret_url;
}

/** A code narrows to the status that it comes with. */
export function refused(error: operations["decideApproval"]["responses"][409]["content"]["application/json"]): string {
  error.error.code satisfies "APPROVAL_ALREADY_DECIDED" | "IDEMPOTENCY_KEY_REUSED";
  // @ts-expect-error: that is answered with 410
  if (error.error.code === "APPROVAL_EXPIRED") return "";
  return error.error.status;
}

/** Requests have the fields that there are, and no value of a secret beside the one place for it. */
export const message: Schemas["MessageRequest"] = { skill: "monthly-report", input: { month: "2026-10" }, secret_input: ["STRIPE_KEY"] };
// @ts-expect-error: names only
message.secret_input = [{ STRIPE_KEY: "sk-1" }];
// @ts-expect-error: there is no such field
message.prompt = "hello";
// @ts-expect-error: there is no such strategy
message.multitask_strategy = "rollback";

/** A path without a version is there, and one that is not there is not. */
export type Decide = paths["/api/workspaces/{id}/approvals/{approvalId}/decide"];
// @ts-expect-error: the decision alone has no version
export type Secret = paths["/api/workspaces/{id}/approvals/{approvalId}/secret"];

/** A callback is told with the body that a blocking call would have had. */
export function told(report: webhooks["turn.completed"]["post"]["requestBody"]["content"]["application/json"]): string {
  report.type satisfies "turn.completed";
  return report.data.output;
}
