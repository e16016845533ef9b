// A web server that wraps each answer in a resumable stream, as the library's documentation shows.
import http from 'node:http'
import { Readable } from 'node:stream'
import { createClient } from 'redis'
import { createResumableStreamContext } from 'resumable-stream'
import { deltas } from '../common.mjs'

const [port, redis] = process.argv.slice(2)
const clients = await Promise.all([1, 2].map(() => createClient({ url: `redis://127.0.0.1:${redis}` }).connect()))
const context = createResumableStreamContext({ waitUntil: (p) => p.catch(console.error), publisher: clients[0], subscriber: clients[1] })

http.createServer(async (req, res) => {
  const url = new URL(req.url, 'http://localhost')
  const work = { deltas: Number(url.searchParams.get('deltas')), rate: Number(url.searchParams.get('rate')) }
  const frames = async function* () {
    for await (const delta of deltas(work)) yield `data: ${JSON.stringify({ delta })}\n\n`
  }
  const stream = await context.createNewResumableStream(url.pathname, () => ReadableStream.from(frames()))
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  Readable.fromWeb(stream).pipe(res)
}).listen(Number(port), '127.0.0.1', () => console.log('ready'))
