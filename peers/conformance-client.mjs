// The client that the conformance suite asks for, on the official SDK for TypeScript.
//
//     node conformance-client.mjs URL
//
// The suite says in MCP_CONFORMANCE_SCENARIO what to do, and in MCP_CONFORMANCE_PROTOCOL_VERSION in which revision.
// Without PORTCULLIS_GATE the SDK speaks to URL itself. With `stdio`, it speaks to `portcullis mcp --url URL`; with
// `endpoint`, to `/mcp` of a daemon whose bundle names URL. PORTCULLIS is the program. Where a server wants
// credentials, the client is the SDK, or the gate with `portcullis upstream login`; this script is the person who agrees.

import { Direct, Gated } from './conformance-way.mjs';
import { installed } from './installed.mjs';

const { Client } = installed('@modelcontextprotocol/client');

const CONTEXT = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const STATELESS = '2026-07-28';
const IS_STATELESS = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === STATELESS;
/** For servers of the suite that answer neither `server/discover` nor `initialize`. */
const KNOWN = {
  kind: 'modern',
  discover: { supportedVersions: [STATELESS], capabilities: { tools: {}, resources: {}, prompts: {} } },
};
const LOGINS_MAX = 2;

async function connected(way, { capabilities = {}, handlers = {}, known = false } = {}) {
  const versionNegotiation = { mode: IS_STATELESS ? 'auto' : 'legacy' };
  const client = new Client({ name: 'conformance-client', version: '1.0.0' }, { capabilities, versionNegotiation });
  for (const [method, handle] of Object.entries(handlers)) client.setRequestHandler(method, handle);
  await client.connect(await way.transport(), known ? { prior: KNOWN } : undefined);
  return client;
}

async function listed(way) {
  const client = await connected(way);
  await client.listTools();
  return client.close();
}

async function added(way) {
  const client = await connected(way);
  await client.listTools();
  await client.callTool({ name: 'add_numbers', arguments: { a: 5, b: 3 } });
  return client.close();
}

async function defaults(way) {
  const client = await connected(way, {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    handlers: { 'elicitation/create': () => ({ action: 'accept', content: {} }) },
  });
  await client.listTools();
  await client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} });
  return client.close();
}

async function takenUp(way) {
  const client = await connected(way);
  await client.listTools();
  await client.callTool({ name: 'test_reconnection', arguments: {} });
  return client.close();
}

async function introduced(way) {
  const client = await connected(way, { capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {} } });
  return client.close();
}

async function headers(way) {
  const client = await connected(way, { known: true });
  const { tools } = await client.listTools();
  await client.callTool({ name: tools[0].name, arguments: {} });
  const { resources } = await client.listResources();
  await client.readResource({ uri: resources[0].uri });
  const { prompts } = await client.listPrompts();
  await client.getPrompt({ name: prompts[0].name, arguments: {} });
  return client.close();
}

async function argumentHeaders(way) {
  const client = await connected(way, { known: true });
  await client.listTools();
  for (const call of CONTEXT.toolCalls) await client.callTool({ name: call.name, arguments: call.arguments });
  return client.close();
}

async function badArgumentHeaders(way) {
  const client = await connected(way, { known: true });
  const { tools } = await client.listTools();
  for (const { name } of tools) await client.callTool({ name, arguments: { region: 'us-west1' } });
  return client.close();
}

async function roundTrips(way) {
  const client = await connected(way, {
    capabilities: { elicitation: {} },
    handlers: { 'elicitation/create': () => ({ action: 'accept', content: { confirmed: true } }) },
    known: true,
  });
  for (const kind of ['echo_state', 'no_state', 'unrelated']) {
    await client.callTool({ name: `test_mrtr_${kind}`, arguments: {} });
  }
  // The SDK refuses a result that does not say what it is; the suite asks whether it calls again.
  await client.callTool({ name: 'test_mrtr_no_result_type', arguments: {} }).catch(() => undefined);
  return client.close();
}

async function schemaReturned(way) {
  const client = await connected(way);
  const { tools } = await client.listTools();
  const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
  await client.callTool({ name: 'json_schema_echo', arguments: { schema: inputSchema } });
  return client.close();
}

/** Calls a tool, logging in where that is asked for. A client that looked for the revision first
 * would take the refusal for that of an earlier one. */
async function loggedIn(way) {
  for (let logins = 0; ; logins += 1) {
    try {
      const client = await connected(way, { known: IS_STATELESS });
      await client.listTools();
      await client.callTool({ name: 'test-tool', arguments: {} });
      return client.close();
    } catch (error) {
      if (logins === LOGINS_MAX || !way.wantsLogin(error)) throw error;
      await way.login(error);
    }
  }
}

const SCENARIOS = {
  initialize: listed,
  tools_call: added,
  'elicitation-sep1034-client-defaults': defaults,
  'sse-retry': takenUp,
  'request-metadata': introduced,
  'http-standard-headers': headers,
  'http-custom-headers': argumentHeaders,
  'http-invalid-tool-headers': badArgumentHeaders,
  'sep-2322-client-request-state': roundTrips,
  'json-schema-ref-no-deref': listed,
  'json-schema-2020-12-preservation': schemaReturned,
};

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const url = process.argv.at(-1);
const how = process.env.PORTCULLIS_GATE;
const way = how ? await Gated.open(how, url, CONTEXT, scenario) : new Direct(url, CONTEXT);
const act = scenario.startsWith('auth/') ? loggedIn : SCENARIOS[scenario];
if (!act) throw new Error(`this client does not know the scenario ${scenario}`);
try {
  await act(way);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await way.close();
}
process.exit();
