// Packages of .peers/npm for scripts that are not in it.

import { createRequire } from 'node:module';

const require = createRequire(new URL('../.peers/npm/package.json', import.meta.url));

/** A package as `cargo xtask peers` has installed it. */
export function installed(name) {
  return require(name);
}
