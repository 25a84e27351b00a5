// Uses what `server-everything` offers through the official client for TypeScript, and reports what was said.
//
//     node surface.mjs [--token FILE] URL
//     node surface.mjs -- COMMAND ARGS...
//
// The report has the form of surface.py's, for compare.py, and is put together from the messages as the transport has
// them, before the client reads them. Notifications are sorted by their methods, because streams have no common order.
// Tasks are left to surface.py: this client has none.

import { setTimeout as sleep } from 'node:timers/promises';

import { installed } from './installed.mjs';
import { asked, calls, noted, notifications, transport } from './wire.mjs';

const { Client } = installed('@modelcontextprotocol/client');

const WAIT_MS_MAX = 10_000;
const ATTEMPTS_MAX = 3;
const TEXT = 'demo://resource/dynamic/text/7';

const problems = [];
let step = 'connect';

async function run(name, work, expected = 'result') {
  step = name;
  const got = await work().then(
    (result) => (result?.isError ? 'isError' : 'result'),
    (error) => `error ${error.message}`,
  );
  if (!got.startsWith(expected)) problems.push(`${name}: expected ${expected}, got ${got}`);
}

async function until(what, condition) {
  for (let waited = 0; waited < WAIT_MS_MAX; waited += 20) {
    if (condition()) return;
    await sleep(20);
  }
  problems.push(`${step}: waited ${WAIT_MS_MAX} ms for ${what}`);
}

const count = (method) => notifications.filter((one) => one.method === method).length;

async function lists(client) {
  await run('tools', () => client.listTools());
  await run('resources', () => client.listResources());
  await run('templates', () => client.listResourceTemplates());
  await run('prompts', () => client.listPrompts());
  await run('ping', () => client.ping());
}

async function tools(client) {
  const call = (name, given, expected) =>
    run(`${name} ${JSON.stringify(given)}`, () => client.callTool({ name, arguments: given }), expected);
  await call('echo', { message: 'héllo \u2028 "quoted" \\ 😀' });
  await call('echo', { message: 'hello', extra: { deep: [null, true] } });
  await call('echo', {}, 'isError');
  await call('get-annotated-message', { messageType: 'error', includeImage: true });
  await call('get-resource-links', { count: 3 });
  await call('get-resource-reference', { resourceType: 'Text', resourceId: 1 });
  await call('get-resource-reference', { resourceType: 'Blob', resourceId: 2 });
  await call('get-structured-content', { location: 'Chicago' });
  await call('get-structured-content', { location: 'Atlantis' }, 'isError');
  await call('get-sum', { a: 9007199254740991, b: -1 });
  await call('get-tiny-image', {});
  await call('gzip-file-as-resource', { name: 'a.gz', data: 'data:text/plain,portcullis', outputType: 'resource' });
  await call('no-such-tool', {}, 'isError');
  await call('get-roots-list', {});
  await call('trigger-sampling-request', { prompt: 'say something', maxTokens: 20 });
  await call('trigger-elicitation-request', {});
}

async function progress(client) {
  const name = 'trigger-long-running-operation';
  let reports = 0;
  const onprogress = () => (reports += 1);
  await run('progress', () => client.callTool({ name, arguments: { duration: 0.4, steps: 4 } }, { onprogress }));
  await until('four reports', () => reports === 4);
  const abort = new AbortController();
  const heard = count('notifications/progress');
  const given = { onprogress: () => abort.abort('enough'), signal: abort.signal };
  await run('cancelled', () => client.callTool({ name, arguments: { duration: 1.2, steps: 3 } }, given), 'error');
  // The server goes on to report progress of what it was told to stop.
  await until('the last report', () => count('notifications/progress') >= heard + 3);
}

async function resources(client) {
  for (const uri of [TEXT, 'demo://resource/dynamic/blob/8', 'demo://resource/static/document/features.md']) {
    await run(`read ${uri}`, () => client.readResource({ uri }));
  }
  await run('read unknown', () => client.readResource({ uri: 'demo://nowhere' }), 'error');
  await run('subscribe', () => client.subscribeResource({ uri: TEXT }));
  const updated = 'notifications/resources/updated';
  await run('updates on', () => client.callTool({ name: 'toggle-subscriber-updates', arguments: {} }));
  await until('an update', () => count(updated) > 0);
  await run('updates off', () => client.callTool({ name: 'toggle-subscriber-updates', arguments: {} }));
  await run('unsubscribe', () => client.unsubscribeResource({ uri: TEXT }));
}

async function prompts(client) {
  const get = (name, given, expected) => run(`prompt ${name}`, () => client.getPrompt({ name, arguments: given }), expected);
  await get('simple-prompt');
  await get('args-prompt', { city: 'Turin', state: 'Piedmont' });
  await get('args-prompt', {}, 'error');
  await get('completable-prompt', { department: 'Sales', name: 'Eve' });
  await get('resource-prompt', { resourceType: 'Text', resourceId: '5' });
  await get('no-such-prompt', undefined, 'error');
  const ref = { type: 'ref/prompt', name: 'completable-prompt' };
  await run('complete', () => client.complete({ ref, argument: { name: 'department', value: 'S' } }));
  await run('log level', () => client.setLoggingLevel('error'));
}

function clientOf() {
  const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {} } };
  const client = new Client({ name: 'surface', version: '1' }, { capabilities });
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///srv/demo', name: 'demo' }] }));
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    content: { type: 'text', text: 'a scripted completion' },
    model: 'scripted',
  }));
  client.setRequestHandler('elicitation/create', () => ({
    action: 'accept',
    content: { name: 'Ada Example', check: true, integer: 7 },
  }));
  return client;
}

/**
 * A client that the server has asked for its roots; it then offers what depends on them. It asks once, soon after the
 * handshake, and its question is lost where this client does not listen yet: then another session is opened.
 */
async function connected() {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    for (const kept of [calls, asked]) kept.clear();
    notifications.length = 0;
    problems.length = 0;
    const client = clientOf();
    await client.connect(noted(transport(process.argv.slice(2)), () => step));
    await until('the server to ask for the roots', () => asked.size > 0 && count('notifications/message') > 0);
    if (problems.length === 0) return client;
    await client.close();
  }
  throw new Error(problems.join());
}

const client = await connected();
for (const part of [lists, tools, progress, resources, prompts]) await part(client);
await client.close();
notifications.sort((one, other) => one.method.localeCompare(other.method));
for (const call of calls.values()) if (!('result' in call) && !('error' in call)) call.cancelled = true;
const report = { calls: [...calls.values()], notifications, requests: [...asked.values()], problems };
process.stdout.write(JSON.stringify(report), () => process.exit(problems.length > 0 ? 1 : 0));
