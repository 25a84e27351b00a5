// Takes the steps it is told to, through the official client for TypeScript, and reports what was said.
//
//     node steps.mjs STEPS [--token FILE] URL
//     node steps.mjs STEPS -- COMMAND ARGS...
//
// STEPS is a JSON list in the form of filesystem.py's: {"tool": NAME, "arguments": {...}}, {"list_tools": 0},
// {"list_prompts": 0}, {"list_resources": 0}, {"list_resource_templates": 0}. The report has each request with its answer,
// `initialize` included, as the transport had them.

import { installed } from './installed.mjs';
import { calls, noted, transport } from './wire.mjs';

const { Client } = installed('@modelcontextprotocol/client');

const LISTS = {
  list_tools: 'tools/list',
  list_prompts: 'prompts/list',
  list_resources: 'resources/list',
  list_resource_templates: 'resources/templates/list',
};

const [steps, ...server] = process.argv.slice(2);
let step = 'connect';
const client = new Client({ name: 'steps', version: '1' });
await client.connect(noted(transport(server), () => step));
for (const [number, wanted] of JSON.parse(steps).entries()) {
  step = `${number}`;
  const list = Object.keys(LISTS).find((name) => name in wanted);
  if (list === undefined && !('tool' in wanted)) throw new Error(`step ${number} is none that this script knows`);
  const asked = list
    ? client.request({ method: LISTS[list], params: {} })
    : client.callTool({ name: wanted.tool, arguments: wanted.arguments });
  // The report has errors, too.
  await asked.catch(() => {});
}
await client.close();
process.stdout.write(JSON.stringify({ steps: [...calls.values()] }), () => process.exit(0));
