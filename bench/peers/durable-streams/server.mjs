import { DurableStreamTestServer } from '@durable-streams/server'

await new DurableStreamTestServer({ port: Number(process.argv[2]), host: '127.0.0.1', compression: false }).start()
console.log('ready')
