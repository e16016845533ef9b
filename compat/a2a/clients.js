// The official A2A client talks to a server: in version 1.0 of the protocol, and in version
// 0.3 as it speaks to older agents. Every conversation that docs/reference/a2a.md tells of is held.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';

const { PARLEY_URL: url, PARLEY_API_KEY: key, PARLEY_CONTROL_URL: control, HOOK_PORT: port } = process.env;

// crash kills the server with kill -9; when it returns another one is up in its place.
async function crash() {
  const res = await fetch(`${control}/crash`, { method: 'POST' });
  assert.ok(res.ok, `crash: ${res.status}`);
}

// keyed sends the key with every request.
const keyed = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('Authorization', `Bearer ${key}`);
  return fetch(input, { ...init, headers });
};

const legacyCompat = { enabled: true };
const resolver = new DefaultAgentCardResolver({ fetchImpl: keyed, legacyCompat });
const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl: keyed, legacyCompat })], cardResolver: resolver });

const message = (parts, more = {}) => ({
  messageId: randomUUID(), role: Role.ROLE_USER, contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined,
  parts: parts.map((content) => ({ content, metadata: undefined, filename: '', mediaType: '' })), ...more,
});
const text = (value) => ({ $case: 'text', value });
const data = (value) => ({ $case: 'data', value });
const request = (msg, configuration) => ({ tenant: '', message: msg, configuration, metadata: undefined });
const configuration = (more) => ({ acceptedOutputModes: [], taskPushNotificationConfig: undefined, historyLength: undefined, returnImmediately: false, ...more });

// said is the text of an artifact of a task.
const said = (task, id = 'answer') => task.artifacts.find((a) => a.artifactId === id)?.parts.map((p) => p.content.value).join('');

// heard puts the pieces of an answer together.
function heard(updates) {
  let answer = '';
  for (const { payload } of updates) {
    if (payload.$case === 'task') answer = said(payload.value) ?? '';
    if (payload.$case === 'artifactUpdate' && payload.value.artifact.artifactId === 'answer') {
      const piece = payload.value.artifact.parts[0].content.value;
      answer = payload.value.append ? answer + piece : piece;
    }
  }
  return answer;
}

// states are those that a stream goes through, each once.
function states(updates) {
  const list = [];
  for (const { payload } of updates) {
    const state = payload.$case === 'task' ? payload.value.status.state : payload.$case === 'statusUpdate' ? payload.value.status.state : undefined;
    if (state !== undefined && state !== list.at(-1)) list.push(state);
  }
  return list;
}

async function collect(stream, until = () => false) {
  const updates = [];
  for await (const update of stream) {
    updates.push(update);
    if (until(update, updates)) break;
  }
  return updates;
}

const { TASK_STATE_SUBMITTED: SUBMITTED, TASK_STATE_WORKING: WORKING, TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_INPUT_REQUIRED: INPUT, TASK_STATE_CANCELED: CANCELED } = TaskState;

async function converse(client, version, hook, binding = 'JSONRPC') {
  const steps = {
    async 'a message and its answer'() {
      const asked = message([text('@say Hello, you.')]);
      const task = await client.sendMessage(request(asked));
      assert.equal(task.status.state, COMPLETED);
      assert.deepEqual(task.history.map((m) => [m.messageId, m.role]), [[asked.messageId, Role.ROLE_USER]]);
      assert.equal((await client.sendMessage(request(asked))).id, task.id, 'the same message again is the same task');
      assert.equal(said(task), 'Hello, you.');
      const again = await client.sendMessage(request(message([text('@say Again.')], { contextId: task.contextId })));
      assert.equal(again.contextId, task.contextId);
      assert.equal(said(await client.getTask({ tenant: '', id: task.id, historyLength: undefined })), 'Hello, you.');
    },
    async 'a stream'() {
      const updates = await collect(client.sendMessageStream(request(message([text('@text 40 deltas')]))));
      assert.deepEqual(states(updates), [SUBMITTED, WORKING, COMPLETED]);
      const task = await client.getTask({ tenant: '', id: updates[0].payload.value.id, historyLength: undefined });
      assert.equal(heard(updates), said(task));
    },
    async 'a stream that is lost, and the rest of it'() {
      const first = await collect(client.sendMessageStream(request(message([text('@text 400 deltas at 200/s')]))), (_, all) => all.length === 20);
      const id = first[0].payload.value.id;
      const rest = await collect(client.resubscribeTask({ tenant: '', id }));
      assert.equal(rest[0].payload.$case, 'task');
      const task = await client.getTask({ tenant: '', id, historyLength: undefined });
      assert.equal(heard([...first, ...rest]), said(task));
      assert.equal(states(rest).at(-1), COMPLETED);
      await assert.rejects(collect(client.resubscribeTask({ tenant: '', id })));
    },
    async 'a stream whose server dies, and the rest of it from another'() {
      const first = [];
      const stream = client.sendMessageStream(request(message([text('@text 400 deltas of 12 bytes at 200/s')])));
      await assert.rejects(async () => {
        for await (const update of stream) if (first.push(update) === 60) await crash();
      }, 'a stream that is cut off is no end');
      const id = first[0].payload.value.id;
      const rest = await collect(client.resubscribeTask({ tenant: '', id }));
      const task = await client.getTask({ tenant: '', id, historyLength: undefined });
      assert.equal(said(task).length, 400 * 12);
      assert.equal(heard(rest), said(task));
      assert.ok(heard(first).length > 0 && said(task).startsWith(heard(first)));
      assert.equal(states(rest).at(-1), COMPLETED);
    },
    async 'a question and its answer'() {
      const asked = await collect(client.sendMessageStream(request(message([text('@say I would write.\n@call wiki_write {"page":"a2a","content":"x"}\n@say Done.')]))),
        ({ payload }) => payload.$case === 'statusUpdate' && payload.value.status.state === INPUT);
      const { taskId, contextId, status } = asked.at(-1).payload.value;
      assert.equal(status.message.parts[1].content.value.kind, 'approval');
      const answered = await collect(client.sendMessageStream(request(message([data({ decision: 'allow' })], { taskId, contextId }))));
      assert.equal(states(answered).at(-1), COMPLETED);
      assert.match(heard(answered), /Done\.$/);
      const second = await client.sendMessage(request(message([text('@call wiki_write {"page":"b2b","content":"x"}\n@say Denied, then.')])));
      assert.equal(second.status.state, INPUT);
      const [word] = /deny [0-9A-Z]{6}/.exec(second.status.message.parts[0].content.value);
      const end = await client.sendMessage(request(message([text(`${word} No.`)], { taskId: second.id, contextId: second.contextId })));
      assert.equal(end.id, second.id);
      assert.equal(end.status.state, COMPLETED);
    },
    async 'an end by hand'() {
      const task = await client.sendMessage(request(message([text('@wait 1m')]), configuration({ returnImmediately: true })));
      for (let i = 0; i < 2; i++) assert.equal((await client.cancelTask({ tenant: '', id: task.id, metadata: undefined })).status.state, CANCELED);
      await assert.rejects(client.cancelTask({ tenant: '', id: randomUUID(), metadata: undefined }), /not found/i);
      const updates = await collect(client.sendMessageStream(request(message([text('@wait 1m')]))), ({ payload }, all) => {
        if (payload.$case === 'statusUpdate' && payload.value.status.state === WORKING) client.cancelTask({ tenant: '', id: all[0].payload.value.id, metadata: undefined });
        return false;
      });
      assert.equal(states(updates).at(-1), CANCELED);
      await assert.rejects(client.cancelTask({ tenant: '', id: (await client.sendMessage(request(message([text('@say Hi.')])))).id, metadata: undefined }));
    },
    async 'a list'() {
      if (version === '0.3') return 'a list, which that version does not have';
      const wanted = { tenant: '', contextId: '', status: COMPLETED, pageSize: 2, pageToken: '', historyLength: 1, statusTimestampAfter: undefined, includeArtifacts: true };
      const tasks = [];
      for (let pageToken = ''; ; ) {
        const page = await client.listTasks({ ...wanted, pageToken });
        tasks.push(...page.tasks);
        assert.ok(page.tasks.length <= 2 && page.totalSize > 2);
        pageToken = page.nextPageToken;
        if (pageToken === '') {
          assert.deepEqual([new Set(tasks.map((t) => t.id)).size, tasks.length], [page.totalSize, page.totalSize]);
          break;
        }
      }
      assert.ok(tasks.every((t) => t.status.state === COMPLETED && t.history.length === 1 && t.artifacts));
      const mine = await client.listTasks({ ...wanted, contextId: tasks[0].contextId, includeArtifacts: false });
      assert.ok(mine.tasks.every((t) => t.contextId === tasks[0].contextId && t.artifacts.length === 0));
    },
    async 'news by push'() {
      const config = { tenant: '', id: 'mine', taskId: '', url: `http://hook.example:${port}/`, token: 'token', authentication: { scheme: 'Bearer', credentials: 'hush' } };
      const task = await client.sendMessage(request(message([text('@wait 500ms\n@say Told.')]), configuration({ returnImmediately: true, taskPushNotificationConfig: config })));
      const { configs } = await client.listTaskPushNotificationConfig({ tenant: '', taskId: task.id, pageSize: 0, pageToken: '' });
      assert.deepEqual(configs.map((c) => c.id), ['mine']);
      const other = await client.createTaskPushNotificationConfig({ ...config, id: 'other', taskId: task.id });
      assert.equal(other.id, 'other');
      assert.equal((await client.getTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'other' })).url, config.url);
      await client.deleteTaskPushNotificationConfig({ tenant: '', taskId: task.id, id: 'other' });
      const { headers, body } = await hook();
      assert.equal(headers.authorization, 'Bearer hush');
      assert.equal(headers['x-a2a-notification-token'], 'token');
      const told = version === '0.3' ? body : body.task;
      assert.equal(told.id, task.id);
      assert.match(JSON.stringify(told.artifacts), /Told\./);
      const asks = await client.sendMessage(request(message([text('@call wiki_write {"page":"c2c","content":"x"}\n@say Done.')]), configuration({ taskPushNotificationConfig: config })));
      const news = async () => ((body) => (version === '0.3' ? body : body.task))((await hook()).body);
      const asked = await news();
      assert.deepEqual([asked.id, asked.status.state], [asks.id, version === '0.3' ? 'input-required' : 'TASK_STATE_INPUT_REQUIRED']);
      await client.sendMessage(request(message([data({ decision: 'deny' })], { taskId: asks.id, contextId: asks.contextId })));
      const end = await news();
      assert.deepEqual([end.id, end.status.state], [asks.id, version === '0.3' ? 'completed' : 'TASK_STATE_COMPLETED']);
    },
    async 'the card of the workspace'() {
      const card = await client.getAgentCard();
      assert.equal(card.name, 'w');
      assert.ok(card.capabilities.streaming && card.capabilities.pushNotifications);
      assert.ok(card.skills.length > 0 && Object.keys(card.securitySchemes).length > 0);
    },
  };
  for (const [name, step] of Object.entries(steps)) {
    if (binding !== 'JSONRPC' && name.includes('server dies')) continue; // it costs a server, and is the same stream
    const without = await step();
    console.log(`${version} ${binding}: ${without ?? name}`);
  }
}

// listen receives push notifications.
const waiting = [];
const got = [];
const server = createServer(async (req, res) => {
  let body = '';
  for await (const chunk of req) body += chunk;
  res.end();
  const news = { headers: req.headers, body: JSON.parse(body) };
  waiting.length ? waiting.shift()(news) : got.push(news);
}).listen(Number(port), '127.0.0.1');
await once(server, 'listening');
const hook = () => (got.length ? got.shift() : new Promise((resolve) => waiting.push(resolve)));

const stranger = await new DefaultAgentCardResolver({ legacyCompat }).resolve(url);
assert.equal(stranger.supportedInterfaces.length, 3);
const card = await resolver.resolve(url);
await converse(await factory.createFromAgentCard(card), '1.0', hook);
const plain = { ...card, supportedInterfaces: card.supportedInterfaces.filter((i) => i.protocolBinding === 'HTTP+JSON') };
await converse(await new ClientFactory({ transports: [new RestTransportFactory({ fetchImpl: keyed })], cardResolver: resolver }).createFromAgentCard(plain), '1.0', hook, 'HTTP+JSON');
const old = { ...card, supportedInterfaces: card.supportedInterfaces.filter((i) => i.protocolVersion === '0.3') };
await converse(await factory.createFromAgentCard(old), '0.3', hook);

// An agent of old sees a card of old.
const { protocolVersion, url: endpoint } = await (await fetch(new URL('/.well-known/agent-card.json', url), { headers: { 'A2A-Version': '0.3' } })).json();
assert.deepEqual([protocolVersion, endpoint], ['0.3.0', `${url}/a2a`]);
server.close();
console.log('The clients have ended well.');
