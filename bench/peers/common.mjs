// common.mjs holds what the drivers for Node share: the work, the deltas and the check.
import { spawn } from 'node:child_process'
import http from 'node:http'
import net from 'node:net'

// parseWork reads `flat STREAMS DELTAS` or `paced STREAMS RATE SECONDS`.
export function parseWork(args) {
  const [kind, streams, n, seconds] = [args[0], ...args.slice(1).map(Number)]
  if (kind === 'paced') return { kind, streams, rate: n, deltas: n * seconds }
  return { kind: 'flat', streams, rate: 0, deltas: n }
}

// now is Unix time in milliseconds with decimals.
export const now = () => performance.timeOrigin + performance.now()

// deltas yields the deltas of one stream at its pace: time of emission, number, and dots up to 32.
export async function* deltas({ deltas: n, rate }) {
  const began = now()
  for (let i = 0; i < n; i++) {
    if (rate > 0) {
      const wait = began + (i * 1000) / rate - now()
      if (wait > 0) await new Promise((r) => setTimeout(r, wait))
    }
    yield `${now().toFixed(3)} ${i} `.padEnd(32, '.') + '\n'
  }
}

// Check takes the text of one stream: each delta must arrive once and in order.
export class Check {
  constructor(work, waits) {
    Object.assign(this, { work, waits, next: 0, rest: '' })
  }
  text(text) {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop()
    for (const line of lines) {
      const [at, number] = line.split(' ')
      if (Number(number) !== this.next) throw new Error(`${JSON.stringify(line)} is not delta ${this.next}`)
      this.next++
      this.waits.push(now() - Number(at))
    }
  }
  get whole() {
    return this.next === this.work.deltas && this.rest === ''
  }
  end() {
    if (!this.whole) throw new Error(`${this.next} deltas of ${this.work.deltas}`)
  }
}

// measure runs one stream per place at once, and prints the figures.
export async function measure(work, stream) {
  const waits = []
  const began = now()
  await Promise.all(Array.from({ length: work.streams }, (_, i) => {
    const check = new Check(work, waits)
    return stream(i, check).then(() => check.end())
  }))
  const figures = { per_second: waits.length / ((now() - began) / 1000) }
  if (work.rate > 0) {
    waits.sort((a, b) => a - b)
    figures.p50_ms = waits[Math.floor(0.5 * (waits.length - 1))]
    figures.p99_ms = waits[Math.floor(0.99 * (waits.length - 1))]
  }
  console.log(JSON.stringify(figures))
}

// request sends a request, passes the answer's text on as it arrives, and ends with its status.
export function request(url, options, each = () => {}) {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options
    const req = http.request(url, { agent, ...rest }, (res) => {
      res.setEncoding('utf8')
      let text = ''
      res.on('data', (chunk) => {
        try {
          if (res.statusCode < 300) each(chunk)
          else text += chunk
        } catch (err) {
          reject(err)
          req.destroy()
        }
      })
      res.on('end', () => (res.statusCode < 300 ? resolve(res.statusCode) : reject(new Error(`${res.statusCode} ${text}`))))
      res.on('error', reject)
    })
    req.on('error', reject)
    req.end(body)
  })
}
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity })

// sse returns a function that takes pieces of an event stream and calls each with whole events.
export function sse(each) {
  let rest = ''
  return (chunk) => {
    const frames = (rest + chunk).replaceAll('\r\n', '\n').split('\n\n')
    rest = frames.pop()
    for (const frame of frames) {
      let event = 'message'
      const data = []
      for (const line of frame.split('\n')) {
        if (line.startsWith('event:')) event = line.slice(6).trim()
        if (line.startsWith('data:')) data.push(line[5] === ' ' ? line.slice(6) : line.slice(5))
      }
      each(event, data.join('\n'))
    }
  }
}

// freePort finds a port for a server.
export const freePort = () =>
  new Promise((resolve) => {
    const s = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = s.address()
      s.close(() => resolve(port))
    })
  })

// start runs a server in a process of its own until it prints `ready`. It ends with this process.
export function start(command, args, options = {}, ready = 'ready') {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  let said = ''
  return new Promise((resolve, reject) => {
    const look = (chunk) => {
      if (said.length < 8192) said += chunk
      if (said.includes(ready)) resolve(() => child.kill('SIGTERM'))
    }
    child.stdout.on('data', look)
    child.stderr.on('data', look)
    child.on('error', reject)
    child.on('exit', (code) => reject(new Error(`${command} ended with ${code}: ${said}`)))
    process.on('exit', () => child.kill('SIGKILL'))
  })
}
