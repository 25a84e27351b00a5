// A server that knows no sessions, on the official SDK for TypeScript.
//
//     node stateless-server.mjs
//
// Serves 2026-07-28 and nothing before it at one address of loopback, which it prints.

import { installed } from './installed.mjs';

const { toNodeHandler } = installed('@modelcontextprotocol/node');
const { acceptedContent, createMcpHandler, fromJsonSchema, inputRequired, McpServer } =
  installed('@modelcontextprotocol/server');
const express = installed('express');

const schema = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const text = (text) => ({ content: [{ type: 'text', text }] });
let calls = 0;

function serverOf() {
  const server = new McpServer({ name: 'stateless', version: '1.0.0' }, { instructions: 'Greet people by their names.' });
  const greets = { description: 'greets somebody', inputSchema: fromJsonSchema(schema({ name: { type: 'string' } })) };
  server.registerTool('greet', greets, ({ name }) => text(`Hello, ${name}!`));
  const asks = { description: 'asks for a name, and greets', inputSchema: fromJsonSchema(schema({})) };
  server.registerTool('ask', asks, (_arguments, context) => {
    const name = acceptedContent(context.mcpReq.inputResponses, 'who')?.name;
    if (typeof name === 'string') {
      calls += 1;
      return text(`Hello, ${name}! That is call ${calls}.`);
    }
    const form = { message: 'Who are you?', requestedSchema: schema({ name: { type: 'string' } }) };
    return inputRequired({ inputRequests: { who: inputRequired.elicit(form) } });
  });
  server.registerResource('note', 'note://one', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'a note' }],
  }));
  return server;
}

const handler = toNodeHandler(createMcpHandler(serverOf, { legacy: 'reject', onerror: (error) => console.error(error) }));
const app = express();
app.use(express.json());
app.all('/mcp', (request, response) => handler(request, response, request.body));
const listening = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listening.address().port}/mcp`));
