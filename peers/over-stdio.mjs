// A program that speaks on standard input and output, such as the gate, as a server of both generations over HTTP.
//
//     node over-stdio.mjs COMMAND [ARGUMENT…]
//
// For clients that only speak HTTP, such as the conformance suite. Each session is a process of its own; clients without
// sessions share one. Prints its address on loopback. Messages pass as they are, except for the ids and progress tokens of
// clients without sessions, of which several may use the same.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';

import { eventStore } from './event-store.mjs';
import { installed } from './installed.mjs';

const { localhostHostValidation, localhostOriginValidation } = installed('@modelcontextprotocol/express');
const { NodeStreamableHTTPServerTransport, toNodeHandler } = installed('@modelcontextprotocol/node');
const { classifyInboundRequest, isInitializeRequest, PerRequestHTTPServerTransport, ReadBuffer, serializeMessage } =
  installed('@modelcontextprotocol/server');
const express = installed('express');

const RETRY_MS = 500;
/** The statuses that 2026-07-28 wants beside these errors. */
const STATUSES = new Map([[-32601, 404], [-32020, 400], [-32021, 400], [-32022, 400]]);
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

const [command, ...words] = process.argv.slice(2);
const programs = new Set();

function start(heard) {
  const program = spawn(command, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  programs.add(program);
  program.on('close', () => programs.delete(program));
  const lines = new ReadBuffer();
  program.stdout.on('data', (bytes) => {
    lines.append(bytes);
    for (let message; (message = lines.readMessage()) !== null; ) heard(message);
  });
  program.stdin.on('error', () => {});
  return { say: (message) => program.stdin.write(serializeMessage(message)), end: () => program.stdin.end() };
}

const isResponse = (message) => 'result' in message || 'error' in message;

const sessions = new Map();

/** A session. What the program says of its own accord goes beside the latest request that it works on. */
async function opened() {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    eventStore: eventStore(),
    retryInterval: RETRY_MS,
    onsessioninitialized: (session) => sessions.set(session, transport),
  });
  const open = new Set();
  const program = start((message) => {
    if (isResponse(message)) open.delete(message.id);
    const relatedRequestId = isResponse(message) ? undefined : [...open].at(-1);
    transport.send(message, { relatedRequestId }).catch((error) => console.error(String(error)));
  });
  transport.onmessage = (message) => {
    if (message.method !== undefined && message.id !== undefined) open.add(message.id);
    program.say(message);
  };
  transport.onclose = () => {
    sessions.delete(transport.sessionId);
    program.end();
  };
  await transport.start();
  return transport;
}

/** Requests of clients without sessions, by the number that the program knows. */
const requests = new Map();
let shared;
let numbers = 0;

function answered(message) {
  const params = message.params;
  const of = isResponse(message) ? message.id : (params?.progressToken ?? params?._meta?.[SUBSCRIPTION] ?? [...requests.keys()].at(-1));
  requests.get(of)?.(message);
}

/** The same message with the client's own names for a request. */
function towardsClient(message, { id, params }) {
  if (isResponse(message)) return { ...message, id };
  const changed = { ...message, params: { ...message.params } };
  if (changed.params.progressToken !== undefined) changed.params.progressToken = params._meta.progressToken;
  if (changed.params._meta?.[SUBSCRIPTION] !== undefined) changed.params._meta = { ...changed.params._meta, [SUBSCRIPTION]: id };
  return changed;
}

async function asked({ message, classification }, request) {
  shared ??= start(answered);
  if (message.id === undefined) {
    shared.say(message);
    return new Response(null, { status: 202 });
  }
  const number = (numbers += 1);
  const transport = new PerRequestHTTPServerTransport({ classification });
  await transport.start();
  const refused = new Promise((resolve) => {
    let first = true;
    requests.set(number, (heard) => {
      const status = first ? STATUSES.get(heard.error?.code) : undefined;
      const told = towardsClient(heard, message);
      if (isResponse(heard)) requests.delete(number);
      if (status === undefined) transport.send(told, { relatedRequestId: message.id });
      else resolve(Response.json(told, { status }));
      first = false;
    });
  });
  transport.onclose = () => {
    if (requests.delete(number)) shared.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: number } });
  };
  transport.onmessage = () => {
    const { _meta: meta } = message.params;
    const token = meta.progressToken === undefined ? {} : { progressToken: number };
    shared.say({ ...message, id: number, params: { ...message.params, _meta: { ...meta, ...token } } });
  };
  return Promise.race([transport.handleMessage(message, { request }), refused]);
}

const app = express();
app.use(express.json({ limit: '4mb' }), localhostHostValidation(), localhostOriginValidation());
app.all('/mcp', async (request, response) => {
  const { method, headers, body } = request;
  const inbound = classifyInboundRequest({
    httpMethod: method,
    protocolVersionHeader: headers['mcp-protocol-version'],
    mcpMethodHeader: headers['mcp-method'],
    mcpNameHeader: headers['mcp-name'],
    body,
  });
  if (method === 'POST' && inbound.kind === 'reject') {
    const { httpStatus, code, message, data } = inbound;
    return response.status(httpStatus).json({ jsonrpc: '2.0', id: body?.id ?? null, error: { code, message, data } });
  }
  if (method === 'POST' && inbound.kind === 'modern') {
    return toNodeHandler({ fetch: (web) => asked(inbound, web) })(request, response, body);
  }
  const session = headers['mcp-session-id'];
  const first = session === undefined && isInitializeRequest(body);
  const transport = first ? await opened() : sessions.get(session);
  if (transport) return transport.handleRequest(request, response, body);
  const [status, code, message] = session ? [404, -32001, 'Session not found'] : [400, -32000, 'Session ID required'];
  response.status(status).json({ jsonrpc: '2.0', error: { code, message }, id: null });
});
const listening = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listening.address().port}/mcp`));
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    for (const program of programs) program.kill();
    process.exit();
  });
}
