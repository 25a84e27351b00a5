// How the conformance suite's client reaches a server: by itself, or through the gate.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import { installed } from './installed.mjs';

const { StreamableHTTPClientTransport, UnauthorizedError } = installed('@modelcontextprotocol/client');
const { StdioClientTransport } = installed('@modelcontextprotocol/client/stdio');

const NAME = 'suite';
const ENDS_MS_MAX = 2000;
const LOGGED_MS_MAX = 2000;
/** A client that the suite's authorization servers know by its address (CIMD). */
const CLIENT_ADDRESS = 'https://conformance-test.local/client-metadata.json';
const REDIRECT = 'http://localhost:3000/callback';
const BUNDLE = `version = 1
mode = "observe"
policy = "open"
unknown_tools = "allow"
`;
const OPEN = `[[policy]]
name = 'open'
allowed_types = []
max_steps = 1000
max_side_effects = 1000
`;

/** What a server sends the person's browser to: the way back. */
async function agreed(address) {
  const answer = await fetch(address, { redirect: 'manual' });
  return new URL(answer.headers.get('location'));
}

/** The SDK's own transport, and what it has to keep of a login. */
export class Direct {
  #url;
  #kept = {};
  #back;
  #transport;

  constructor(url, context) {
    this.#url = new URL(url);
    if (context.client_id) {
      const { client_id, client_secret } = context;
      this.#kept.clientInformation = { client_id, client_secret, redirect_uris: [REDIRECT] };
    }
  }

  transport() {
    this.#transport = new StreamableHTTPClientTransport(this.#url, { authProvider: this.#provider() });
    return this.#transport;
  }

  #provider() {
    const kept = this.#kept;
    return {
      redirectUrl: REDIRECT,
      clientMetadataUrl: CLIENT_ADDRESS,
      clientMetadata: { client_name: 'conformance-client', redirect_uris: [REDIRECT] },
      clientInformation: () => kept.clientInformation,
      saveClientInformation: (information) => (kept.clientInformation = information),
      tokens: () => kept.tokens,
      saveTokens: (tokens) => (kept.tokens = tokens),
      codeVerifier: () => kept.verifier,
      saveCodeVerifier: (verifier) => (kept.verifier = verifier),
      // What was found out serves to finish a login, not to begin the next: the server may have moved.
      discoveryState: () => (this.#back ? kept.discovery : undefined),
      saveDiscoveryState: (discovery) => (kept.discovery = discovery),
      invalidateCredentials: (scope) => {
        if (scope === 'all' || scope === 'client') delete kept.clientInformation;
        if (scope === 'all' || scope === 'tokens') delete kept.tokens;
        if (scope === 'all' || scope === 'verifier') delete kept.verifier;
        if (scope === 'all' || scope === 'discovery') delete kept.discovery;
      },
      redirectToAuthorization: async (address) => {
        this.#back = await agreed(address);
      },
    };
  }

  wantsLogin(error) {
    return error instanceof UnauthorizedError && this.#back !== undefined;
  }

  async login() {
    await this.#transport.finishAuth(this.#back.searchParams);
    this.#back = undefined;
  }

  async close() {}
}

/** The gate in between. */
export class Gated {
  #folder = mkdtempSync(join(tmpdir(), 'pc-'));
  #how;
  #url;
  #client = [];
  #endpoint;
  #daemon;
  /** What the gate says of the server in its log, which no client reads. */
  #log = '';

  static async open(how, url, context) {
    const gated = new Gated();
    gated.#how = how;
    gated.#url = url;
    gated.#client = await gated.#registered(context);
    const bundle = join(gated.#folder, 'bundle');
    mkdirSync(join(bundle, 'policies'), { recursive: true });
    writeFileSync(join(bundle, 'portcullis.toml'), `${BUNDLE}\n[server.${NAME}]\nurl = '${url}'\n`);
    writeFileSync(join(bundle, 'policies/open.toml'), OPEN);
    await gated.#serve(bundle);
    return gated;
  }

  #command(...words) {
    return ['--home', join(this.#folder, 'home'), ...words];
  }

  async #serve(bundle) {
    this.#daemon = spawn(process.env.PORTCULLIS, this.#command('serve', '--bundle', bundle, '--http', '127.0.0.1:0'), {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#hear(this.#daemon.stderr);
    let address;
    while (!(address = this.#log.match(/serving HTTP address=(\S+)/)?.[1])) await sleep(10);
    this.#endpoint = new URL(`http://${address}/mcp`);
  }

  #hear(output) {
    output.setEncoding('utf8').on('data', (text) => (this.#log += text));
  }

  transport() {
    if (this.#how === 'stdio') {
      const args = this.#command('mcp', '--server', NAME, '--url', this.#url);
      const transport = new StdioClientTransport({ command: process.env.PORTCULLIS, args, stderr: 'pipe' });
      this.#hear(transport.stderr);
      return transport;
    }
    const token = readFileSync(join(this.#folder, 'home/credentials/agent.token'), 'utf8').trim();
    return new StreamableHTTPClientTransport(this.#endpoint, { authProvider: { token: () => token } });
  }

  wantsLogin(error) {
    return /wants credentials/.test(error?.message);
  }

  async login(error) {
    const words = ['upstream', 'login', NAME, '--url', this.#url, '--no-browser', ...this.#client];
    if (/more scopes are wanted/.test(error.message)) words.push(...(await this.#wanted()));
    const login = spawn(process.env.PORTCULLIS, this.#command(...words), { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    const agree = async (line) => {
      said += `${line}\n`;
      const address = line.match(/https?:\/\/\S+[?&]response_type=\S+/)?.[0];
      if (address) await fetch(await agreed(address));
    };
    for (const input of [login.stdout, login.stderr]) createInterface({ input }).on('line', agree);
    const [status] = await once(login, 'close');
    if (status !== 0) throw new Error(`the login failed: ${said}`);
  }

  /** The scopes that the gate's log says are wanted. */
  async #wanted() {
    for (let waited = 0; waited < LOGGED_MS_MAX; waited += 10) {
      const scopes = [...this.#log.matchAll(/--scope ([^\s`]+)/g)];
      this.#log = '';
      if (scopes.length > 0) return scopes.flatMap(([, scope]) => ['--scope', scope]);
      await sleep(10);
    }
    return [];
  }

  /** The client that the person has registered with the authorization server, or the document, as options of the login. */
  async #registered({ client_id: id, client_secret: secret }) {
    if (!id || !secret) return ['--client-document', CLIENT_ADDRESS];
    const file = join(this.#folder, 'secret');
    writeFileSync(file, secret, { mode: 0o600 });
    const { origin, pathname } = new URL(this.#url);
    const metadata = await (await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`)).json();
    const [issuer] = metadata.authorization_servers;
    return ['--issuer', issuer, '--client-id', id, '--client-secret-file', file];
  }

  async close() {
    this.#daemon.kill();
    await Promise.race([once(this.#daemon, 'close'), sleep(ENDS_MS_MAX)]);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
