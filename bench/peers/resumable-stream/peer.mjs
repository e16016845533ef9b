// resumable-stream with redis-server: the web server keeps the stream in its memory, and Redis only
// carries messages to other servers when a client resumes.
import { freePort, measure, parseWork, request, sse, start } from '../common.mjs'

const work = parseWork(process.argv.slice(2))
const [port, redis] = [await freePort(), await freePort()]
const stopRedis = await start('redis-server', ['--port', String(redis), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], { cwd: '/tmp' }, 'Ready to accept')
const stop = await start(process.execPath, [new URL('server.mjs', import.meta.url).pathname, String(port), String(redis)])

await measure(work, (i, check) =>
  request(`http://127.0.0.1:${port}/${i}?deltas=${work.deltas}&rate=${work.rate}`, { method: 'POST' },
    sse((_, data) => check.text(JSON.parse(data).delta))))
stop()
stopRedis()
process.exit(0)
