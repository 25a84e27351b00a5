// Passes HTTP on to a server, with a bearer token.
//
//     node with-token.mjs FILE URL
//
// For clients that have no credentials, such as the conformance suite. Prints its own address on loopback; the path is
// that of URL. Nothing else is changed, except that this address in `Host` and `Origin` becomes the server's: other
// names pass, so that the server can refuse them.

import { readFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';

const [file, url] = process.argv.slice(2);
const token = readFileSync(file, 'utf8').trim();
const server = new URL(url);

function towards(own, headers) {
  const changed = { ...headers, authorization: `Bearer ${token}` };
  for (const name of ['host', 'origin']) {
    changed[name] = changed[name]?.replace(/^(http:\/\/)?(127\.0\.0\.1|localhost):(\d+)$/, (whole, scheme = '', _host, port) =>
      Number(port) === own ? `${scheme}${server.host}` : whole,
    );
    if (changed[name] === undefined) delete changed[name];
  }
  return changed;
}

const proxy = createServer((incoming, outgoing) => {
  const { method, url: path } = incoming;
  const headers = towards(proxy.address().port, incoming.headers);
  const onward = ask({ host: server.hostname, port: server.port, method, path, headers, agent: false });
  onward.on('response', (answer) => {
    outgoing.writeHead(answer.statusCode, answer.rawHeaders);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
    answer.on('error', () => outgoing.destroy());
  });
  onward.on('error', (error) => {
    if (!outgoing.headersSent) outgoing.writeHead(502);
    outgoing.end(String(error));
  });
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
});
proxy.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${proxy.address().port}${server.pathname}`));
