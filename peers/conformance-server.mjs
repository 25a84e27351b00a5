// The server that the conformance suite asks for, on the official SDK for TypeScript.
//
//     node conformance-server.mjs
//
// Serves both generations at one address of loopback, which it prints. Names of tools, prompts and resources, and what
// is in them, are the suite's: its scenarios call them. Sessions have an event store, so that their streams can be taken
// up again.

import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventStore } from './event-store.mjs';
import { installed } from './installed.mjs';

const { localhostHostValidation, localhostOriginValidation } = installed('@modelcontextprotocol/express');
const { NodeStreamableHTTPServerTransport, toNodeHandler } = installed('@modelcontextprotocol/node');
const {
  acceptedContent,
  classifyInboundRequest,
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  isInitializeRequest,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
} = installed('@modelcontextprotocol/server');
const express = installed('express');

const RETRY_MS = 500;
/** One red pixel, and a WAV file without samples. */
const IMAGE = {
  type: 'image',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
};
const AUDIO = {
  type: 'audio',
  data: 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=',
  mimeType: 'audio/wav',
};

const state = createRequestStateCodec({ key: randomBytes(32) });

const text = (...lines) => ({ content: lines.map((line) => ({ type: 'text', text: line })) });
const schema = (properties = {}, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const words = (description) => ({ type: 'string', description });

function tool(server, name, description, run, input = schema()) {
  server.registerTool(name, { description, inputSchema: fromJsonSchema(input) }, run);
}

/** Tools that answer at once. */
function plainTools(server) {
  const embedded = (uri, mimeType, body) => ({ type: 'resource', resource: { uri, mimeType, text: body } });
  tool(server, 'test_simple_text', 'answers with a text', () => text('This is a simple text response for testing.'));
  tool(server, 'test_image_content', 'answers with an image', () => ({ content: [IMAGE] }));
  tool(server, 'test_audio_content', 'answers with a sound', () => ({ content: [AUDIO] }));
  tool(server, 'test_embedded_resource', 'answers with a resource', () => ({
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }));
  tool(server, 'test_multiple_content_types', 'answers with content of three types', () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      IMAGE,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }));
  tool(server, 'test_error_handling', 'fails', () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  tool(server, 'test_streaming_elicitation', 'answers without a question of its own', () => text('no question'));
  tool(
    server,
    'test_x_mcp_header',
    'has an argument that a header repeats',
    ({ region }) => text(`region=${region ?? 'none'}`),
    schema({ region: { type: 'string', 'x-mcp-header': 'Region' }, level: { type: 'integer' } }, []),
  );
  tool(server, 'json_schema_2020_12_tool', 'has a schema of many keywords', (values) => text(JSON.stringify(values)), {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...schema(
      {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      undefined,
    ),
    required: undefined,
    $defs: {
      address: {
        $anchor: 'addressDef',
        type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
      },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  });
}

/** Tools that say something before they answer. */
function talkingTools(server, transportOf) {
  tool(server, 'test_tool_with_logging', 'logs while it works', async (_arguments, context) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await context.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
      await sleep(50);
    }
    return text('logged');
  });
  tool(server, 'test_logging_tool', 'logs where the request wants it', async (_arguments, context) => {
    await context.mcpReq.log('info', 'test_logging_tool ran');
    return text('logged');
  });
  tool(server, 'test_tool_with_progress', 'reports its progress', async (_arguments, context) => {
    const progressToken = context.mcpReq._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` };
      await context.mcpReq.notify({ method: 'notifications/progress', params });
      await sleep(50);
    }
    return text(String(progressToken));
  });
  tool(server, 'test_reconnection', 'closes its stream before it answers', async (_arguments, context) => {
    transportOf(context.sessionId)?.closeSSEStream(context.mcpReq.id);
    await sleep(100);
    return text('the stream was taken up again');
  });
}

/** Tools that ask the client in the middle of a call (up to 2025-11-25). */
function askingTools(server) {
  const elicit = async (context, message, requestedSchema) => {
    const answer = await context.mcpReq.send({ method: 'elicitation/create', params: { message, requestedSchema } });
    return text(`User response: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
  };
  tool(
    server,
    'test_sampling',
    'asks the client for a completion',
    async ({ prompt }, context) => {
      const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
      const params = { messages, maxTokens: 100 };
      const answer = await context.mcpReq.send({ method: 'sampling/createMessage', params });
      return text(`LLM response: ${answer.content.text}`);
    },
    schema({ prompt: words('what to ask') }),
  );
  tool(
    server,
    'test_elicitation',
    'asks the user',
    ({ message }, context) => elicit(context, message, schema({ response: words("User's response") })),
    schema({ message: words('what the user is asked') }),
  );
  tool(server, 'test_elicitation_sep1034_defaults', 'asks the user with defaults', (_arguments, context) =>
    elicit(
      context,
      'Look at the defaults',
      schema(
        {
          name: { ...words('User name'), default: 'John Doe' },
          age: { type: 'integer', description: 'User age', default: 30 },
          score: { type: 'number', description: 'User score', default: 95.5 },
          status: { ...words('User status'), enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', description: 'Verification status', default: true },
        },
        [],
      ),
    ),
  );
  const titled = ['First', 'Second', 'Third'].map((title, index) => ({ const: `value${index + 1}`, title }));
  const plain = ['option1', 'option2', 'option3'];
  tool(server, 'test_elicitation_sep1330_enums', 'asks the user to choose', (_arguments, context) =>
    elicit(
      context,
      'Choose',
      schema(
        {
          untitledSingle: { ...words('one'), enum: plain },
          titledSingle: { ...words('one with a title'), oneOf: titled },
          legacyEnum: {
            ...words('one with a name'),
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three'],
          },
          untitledMulti: { type: 'array', description: 'some', minItems: 1, maxItems: 3, items: { type: 'string', enum: plain } },
          titledMulti: { type: 'array', description: 'some with titles', minItems: 1, maxItems: 3, items: { anyOf: titled } },
        },
        [],
      ),
    ),
  );
}

const ASK = {
  name: () => inputRequired.elicit({ message: 'What is your name?', requestedSchema: schema({ name: { type: 'string' } }) }),
  yes: () => inputRequired.elicit({ message: 'Go ahead?', requestedSchema: schema({ ok: { type: 'boolean' } }) }),
  completion: (question) =>
    inputRequired.createMessage({
      messages: [{ role: 'user', content: { type: 'text', text: question } }],
      maxTokens: 100,
    }),
};

/** Tools that are called again with what they asked for (from 2026-07-28). */
function tellingTools(server) {
  const name = (context, key = 'user_name') => acceptedContent(context.mcpReq.inputResponses, key)?.name;
  const greeted = (_arguments, context) =>
    typeof name(context) === 'string'
      ? text(`Hello, ${name(context)}!`)
      : inputRequired({ inputRequests: { user_name: ASK.name() } });
  tool(server, 'test_input_required_result_elicitation', 'wants a name', greeted);
  tool(server, 'test_input_required_result_sampling', 'wants a completion', (_arguments, context) => {
    const answer = context.mcpReq.inputResponses?.capital_question;
    if (answer === undefined) {
      return inputRequired({ inputRequests: { capital_question: ASK.completion('What is the capital of France?') } });
    }
    return text(`The client says: ${answer.content?.text}`);
  });
  tool(server, 'test_missing_capability', 'wants a completion', (_arguments, context) =>
    context.mcpReq.inputResponses?.answer === undefined
      ? inputRequired({ inputRequests: { answer: ASK.completion('ping') } })
      : text('answered'),
  );
  tool(server, 'test_input_required_result_list_roots', 'wants roots', (_arguments, context) => {
    const roots = context.mcpReq.inputResponses?.client_roots?.roots;
    if (!Array.isArray(roots)) return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    return text(`${roots.length} roots: ${roots.map((root) => root.uri).join(', ')}`);
  });
  tool(server, 'test_input_required_result_multiple_inputs', 'wants three things', async (_arguments, context) => {
    const { greeting, client_roots: roots } = context.mcpReq.inputResponses ?? {};
    if (typeof name(context) === 'string' && greeting?.content?.text && Array.isArray(roots?.roots)) {
      return text(`${greeting.content.text} ${name(context)} (${roots.roots.length} roots)`);
    }
    return inputRequired({
      inputRequests: {
        user_name: ASK.name(),
        greeting: ASK.completion('Greet somebody'),
        client_roots: inputRequired.listRoots(),
      },
      requestState: await state.mint({ tool: 'multiple_inputs', nonce: randomUUID() }),
    });
  });
  tool(server, 'test_input_required_result_multi_round', 'asks twice', async (_arguments, context) => {
    const { round = 0, called } = context.mcpReq.requestState() ?? {};
    const next = (extra) => state.mint({ round: round + 1, nonce: randomUUID(), ...extra });
    if (round === 0) {
      return inputRequired({ inputRequests: { step1: ASK.name() }, requestState: await next({}) });
    }
    if (round === 1) {
      const requestedSchema = schema({ color: { type: 'string' } });
      const step2 = inputRequired.elicit({ message: 'Which colour?', requestedSchema });
      return inputRequired({ inputRequests: { step2 }, requestState: await next({ called: name(context, 'step1') }) });
    }
    return text(`${called} likes ${acceptedContent(context.mcpReq.inputResponses, 'step2')?.color}`);
  });
  tool(server, 'test_input_required_result_capabilities', 'asks for what the client can do', (_arguments, context) => {
    if (context.mcpReq.inputResponses !== undefined) return text('answered');
    const can = context.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
    const inputRequests = {
      ...(can.elicitation && { user_name: ASK.name() }),
      ...(can.sampling && { greeting: ASK.completion('Greet somebody') }),
      ...(can.roots && { client_roots: inputRequired.listRoots() }),
    };
    return Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : text('the client can do nothing');
  });
}

/** Tools whose state comes back through the client, sealed. */
function sealedTools(server) {
  for (const name of ['request_state', 'tampered_state']) {
    tool(server, `test_input_required_result_${name}`, 'wants a yes and its state', async (_arguments, context) => {
      if (acceptedContent(context.mcpReq.inputResponses, 'confirm') === undefined) {
        const requestState = await state.mint({ tool: name, nonce: randomUUID() });
        return inputRequired({ inputRequests: { confirm: ASK.yes() }, requestState });
      }
      if (context.mcpReq.requestState() === undefined) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'the state is missing');
      }
      return text('state-ok');
    });
  }
}

function resources(server) {
  const one = (name, uri, mimeType, contents) =>
    server.registerResource(name, uri, { title: name, description: `a resource: ${name}`, mimeType }, () => ({
      contents: [{ uri, mimeType, ...contents }],
    }));
  one('static-text', 'test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  one('static-binary', 'test://static-binary', 'image/png', { blob: IMAGE.data });
  one('watched-resource', 'test://watched-resource', 'text/plain', { text: 'Watched resource content' });
  const mimeType = 'application/json';
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  server.registerResource('template', template, { description: 'a template', mimeType }, (uri, { id }) => ({
    contents: [{ uri: uri.toString(), mimeType, text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }],
  }));
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
    server.server.setRequestHandler(method, () => ({}));
  }
}

function prompts(server) {
  const says = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
  const line = (words) => ({ type: 'text', text: words });
  const prompt = (name, argsSchema, get) =>
    server.registerPrompt(
      name,
      { title: name, description: `a prompt: ${name}`, ...(argsSchema && { argsSchema: fromJsonSchema(argsSchema) }) },
      get,
    );
  prompt('test_simple_prompt', undefined, () => says(line('This is a simple prompt for testing.')));
  prompt('test_prompt_with_arguments', schema({ arg1: words('the first'), arg2: words('the second') }), ({ arg1, arg2 }) =>
    says(line(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  prompt('test_prompt_with_embedded_resource', schema({ resourceUri: words('which one') }), ({ resourceUri: uri }) =>
    says({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } }, line('Read it.')),
  );
  prompt('test_prompt_with_image', undefined, () => says(IMAGE, line('Look at it.')));
  prompt('test_input_required_result_prompt', undefined, (context) => {
    const answer = acceptedContent(context.mcpReq.inputResponses, 'user_context')?.context;
    if (typeof answer === 'string') return says(line(`In this context: ${answer}`));
    const requestedSchema = schema({ context: { type: 'string' } });
    return inputRequired({ inputRequests: { user_context: inputRequired.elicit({ message: 'In which context?', requestedSchema }) } });
  });
}

const transports = new Map();

function serverOf(notify) {
  const server = new McpServer(
    { name: 'conformance-server', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      requestState: { verify: state.verify },
    },
  );
  plainTools(server);
  talkingTools(server, (session) => transports.get(session));
  askingTools(server);
  tellingTools(server);
  sealedTools(server);
  tool(server, 'test_trigger_tool_change', 'says that tools have changed', () => (notify.toolsChanged(), text('said')));
  tool(server, 'test_trigger_prompt_change', 'says that prompts have changed', () => (notify.promptsChanged(), text('said')));
  resources(server);
  prompts(server);
  server.server.setRequestHandler('logging/setLevel', () => ({}));
  server.server.setRequestHandler('completion/complete', () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return server;
}

async function opened() {
  const server = serverOf({ toolsChanged: () => server.sendToolListChanged(), promptsChanged: () => server.sendPromptListChanged() });
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    eventStore: eventStore(),
    retryInterval: RETRY_MS,
    onsessioninitialized: (session) => transports.set(session, transport),
  });
  transport.onclose = () => transports.delete(transport.sessionId);
  await server.connect(transport);
  return transport;
}

const stateless = createMcpHandler(() => serverOf(stateless.notify), { onerror: (error) => console.error(error) });
const handleStateless = toNodeHandler(stateless);

const app = express();
app.use(express.json({ limit: '4mb' }), localhostHostValidation(), localhostOriginValidation());
app.all('/mcp', async (request, response) => {
  const { method, headers, body } = request;
  const inbound = classifyInboundRequest({
    httpMethod: method,
    protocolVersionHeader: headers['mcp-protocol-version'],
    mcpMethodHeader: headers['mcp-method'],
    body,
  });
  if (method === 'POST' && inbound.kind !== 'legacy') return handleStateless(request, response, body);
  const session = headers['mcp-session-id'];
  const first = session === undefined && isInitializeRequest(body);
  const transport = first ? await opened() : transports.get(session);
  if (transport) return transport.handleRequest(request, response, body);
  const [status, code, message] = session ? [404, -32001, 'Session not found'] : [400, -32000, 'Session ID required'];
  response.status(status).json({ jsonrpc: '2.0', error: { code, message }, id: null });
});
const listening = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listening.address().port}/mcp`));
