// The service's own stream, read with the usual parts.
import assert from "node:assert/strict";
import { createParser } from "eventsource-parser";
import { EventSource } from "eventsource";
import { begun, crash, headers, long, longText, post, workspace } from "./common.js";

// parser cuts a stream at every byte, in the middle of characters, too.
export async function parser() {
  const res = await post({ command: '@unicode\n@call grep {"pattern":"x"}\n@say done' });
  const bytes = new Uint8Array(await res.arrayBuffer());
  assert.ok(!bytes.includes(13), "there is no carriage return");
  const read = (pieces) => {
    const frames = [];
    const decoder = new TextDecoder();
    const parser = createParser({ onEvent: (e) => frames.push([e.event, e.id, e.data]), onError: (err) => assert.fail(err) });
    for (const piece of pieces) parser.feed(decoder.decode(piece, { stream: true }));
    return frames;
  };
  const whole = read([bytes]);
  assert.deepEqual(read(Array.from(bytes, (_, i) => bytes.subarray(i, i + 1))), whole);
  assert.deepEqual([whole[0][0], whole.at(-1)[0]], ["open", "done"]);
  for (const [, id, data] of whole) assert.ok(/^\d+$/.test(id) && JSON.parse(data));
}

// fetched leaves a message in the middle: its turn goes on, and is taken up where it was left.
export async function fetched() {
  let session;
  let last;
  let text = "";
  let ended = false;
  const read = async ({ body }, seen = () => {}) => {
    const onEvent = ({ event, id, data }) => {
      last = id;
      if (event === "open") session = JSON.parse(data).session_id;
      if (event === "text") text += JSON.parse(data).text;
      ended ||= event === "done";
      seen();
    };
    const parser = createParser({ onEvent, onError: (err) => assert.fail(err) });
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) parser.feed(chunk);
  };
  const leave = new AbortController();
  const sent = await post({ command: long }, { signal: leave.signal });
  await assert.rejects(read(sent, () => text.length > 100 && leave.abort()), { name: "AbortError" });
  assert.ok(!ended && text.length < longText.length, "it was left in the middle");
  await read(await fetch(`${workspace}/sessions/${session}/events?replay=all`, { headers: { ...headers, "Last-Event-ID": last } }));
  assert.ok(ended);
  assert.equal(text, longText);
}

// eventsource follows a turn over the death of its server, and ends at a key that is wrong.
export async function eventsource() {
  const session = await begun({ command: long });
  const events = `${workspace}/sessions/${session}/events`;
  const open = (own) => new EventSource(events, { fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...own } }) });
  let text = "";
  let drops = 0;
  const source = open(headers);
  await new Promise((resolve, reject) => {
    source.addEventListener("text", (e) => {
      text += JSON.parse(e.data).text;
      if (drops === 0 && text.length > 300) {
        drops++;
        crash().catch(reject);
      }
    });
    source.addEventListener("done", () => (source.close(), resolve()));
    source.addEventListener("error", (e) => e.data && reject(new Error(e.data))); // without data it is the connection's
  });
  assert.equal(text, longText);

  const refused = open({ Authorization: "Bearer wrong" });
  const error = await new Promise((resolve) => refused.addEventListener("error", resolve));
  assert.deepEqual([error.code, refused.readyState], [401, EventSource.CLOSED]);
}
