// LangGraph's server from npm, in memory: each stream is a run of a graph that writes deltas, read
// as the server streams it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, measure, parseWork, request, sse, start } from '../common.mjs'

const work = parseWork(process.argv.slice(2))
const port = await freePort()
const folder = mkdtempSync(join(tmpdir(), 'bench-langgraph-')) // the server writes its memory there when it ends
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const env = { ...process.env, LOG_LEVEL: 'error', LANGSMITH_TRACING: 'false' }
const stop = await start(process.execPath, ['--import', 'tsx', new URL('server.mjs', import.meta.url).pathname, folder, String(port), String(work.streams)],
  { env, cwd: new URL('.', import.meta.url).pathname })
const headers = { 'content-type': 'application/json' }

await measure(work, (_, check) =>
  request(`http://127.0.0.1:${port}/runs/stream`, {
    method: 'POST', headers,
    body: JSON.stringify({ assistant_id: 'bench', input: { deltas: work.deltas, rate: work.rate }, stream_mode: ['custom'] }),
  }, sse((event, data) => {
    if (event === 'custom') check.text(JSON.parse(data))
    if (event === 'error') throw new Error(data)
  })))
stop()
process.exit(0)
