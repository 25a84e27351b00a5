// What passes between a client of the official SDK for TypeScript and a server, as the transport has it, before the client
// reads it. Shared by surface.mjs and steps.mjs, whose command lines end in
//
//     [--token FILE] URL
//     -- COMMAND ARGS...

import { readFileSync } from 'node:fs';

import { installed } from './installed.mjs';

const { StreamableHTTPClientTransport } = installed('@modelcontextprotocol/client');
const { StdioClientTransport } = installed('@modelcontextprotocol/client/stdio');

/** What passed: the client's requests by their ids, the server's requests by theirs, and the server's notifications. */
export const calls = new Map();
export const asked = new Map();
export const notifications = [];

export function transport(words) {
  if (words[0] === '--') return new StdioClientTransport({ command: words[1], args: words.slice(2), stderr: 'inherit' });
  const token = words[0] === '--token' ? readFileSync(words[1], 'utf8').trim() : undefined;
  const authProvider = token && { token: () => token };
  return new StreamableHTTPClientTransport(new URL(words.at(-1)), { authProvider });
}

function outcome(message) {
  return 'error' in message ? { error: message.error } : { result: message.result };
}

/** Notes all messages on their way; `step` names what the client is doing. */
export function noted(inner, step) {
  const send = inner.send.bind(inner);
  inner.send = (message, options) => {
    if (message.method && 'id' in message) calls.set(message.id, { name: step(), method: message.method, params: message.params ?? null });
    else if ('id' in message) Object.assign(asked.get(message.id), outcome(message));
    return send(message, options);
  };
  const start = inner.start.bind(inner);
  inner.start = () => {
    const receive = inner.onmessage;
    inner.onmessage = (message, extra) => {
      if (message.method && 'id' in message) asked.set(message.id, { method: message.method, params: message.params ?? null });
      else if (message.method) notifications.push({ method: message.method, params: message.params ?? null });
      else Object.assign(calls.get(message.id), outcome(message));
      receive(message, extra);
    };
    return start();
  };
  return inner;
}
