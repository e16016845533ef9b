// durable-streams, in memory: a producer appends each delta with a request and waits for its answer;
// a reader has the stream as server-sent events.
import { deltas, freePort, measure, parseWork, request, sse, start } from '../common.mjs'

const work = parseWork(process.argv.slice(2))
const port = await freePort()
const stop = await start(process.execPath, [new URL('server.mjs', import.meta.url).pathname, String(port)])
const headers = { 'content-type': 'text/plain' }

await measure(work, async (i, check) => {
  const url = `http://127.0.0.1:${port}/bench/${i}`
  await request(url, { method: 'PUT', headers })
  const read = request(`${url}?offset=-1&live=sse`, { method: 'GET' }, sse((event, data) => event === 'data' && check.text(data)))
  for await (const delta of deltas(work)) await request(url, { method: 'POST', headers, body: delta })
  await request(url, { method: 'POST', headers: { ...headers, 'stream-closed': 'true' } })
  await read
})
stop()
process.exit(0)
