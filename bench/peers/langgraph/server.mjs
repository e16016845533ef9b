import { startServer } from '@langchain/langgraph-api/server'

const [port, workers] = process.argv.slice(3).map(Number)
const cwd = process.argv[2]
await startServer({ port, nWorkers: workers, host: '127.0.0.1', cwd, graphs: { bench: new URL('graph.mjs', import.meta.url).pathname + ':graph' } })
console.log('ready')
