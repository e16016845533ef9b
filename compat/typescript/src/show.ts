import type { Frame } from "./frames.js";

/** Writes a frame down: `event` tells the compiler what `data` is. */
export function show(frame: Frame): void {
  switch (frame.event) {
    case "open":
      console.log(`session ${frame.data.session_id}`);
      break;
    case "text":
      process.stdout.write(frame.data.text);
      break;
    case "reasoning":
      break; // not a part of the answer
    case "tool_use":
      console.log(`\n  ${frame.data.tool}: ${frame.data.summary}`);
      break;
    case "tool_result":
      console.log(`  ${frame.data.tool}: ${frame.data.ok ? "done" : "failed"}${frame.data.truncated ? ", cut" : ""}`);
      break;
    case "input_required":
      console.log(`\n  waits until ${frame.data.expires_at} for the ${frame.data.kind} ${frame.data.approval_id}`);
      break;
    case "usage":
      console.log(`\n  ${frame.data.input_tokens} in, ${frame.data.output_tokens} out, ${frame.data.cost_usd ?? "?"} USD`);
      break;
    case "structured":
      console.log(`  ${JSON.stringify(frame.data.result)}`);
      break;
    case "tool_required":
      for (const call of frame.data.calls) console.log(`  ${call.tool} waits for its result`);
      break;
    case "connect_required":
      console.log(`  ${frame.data.server} needs access: ${frame.data.connect_url}`);
      break;
    case "attachment":
      for (const file of frame.data.attachments) console.log(`  ${file.filename}, ${file.size} bytes: ${file.download_url}`);
      break;
    case "attachment_rejected":
      for (const file of frame.data.attachments) console.log(`  ${file.filename} was rejected: ${file.reason}`);
      break;
    case "error":
      console.log(`\n  ${frame.data.code}: ${frame.data.message}${frame.data.recoverable ? " Send it again." : ""}`);
      break;
    case "done":
      break;
    default:
      frame satisfies never; // a kind that came after these types: skip it
  }
}
