// The program in the README prints what the README says.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { Server, TOKEN } from './server.js';

test('the program in the README prints what the README says', async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const block = (language) => readme.split(`\`\`\`${language}\n`)[1].split('```')[0];
  const server = await Server.start();
  const env = { ...process.env, TREFOIL_URL: server.url, TREFOIL_TOKEN: TOKEN };
  const options = { env, cwd: fileURLToPath(new URL('..', import.meta.url)) };
  const program = ['--input-type=module', '-e', block('js')];
  const { stdout } = await promisify(execFile)(process.execPath, program, options);
  await server.stop();
  assert.equal(stdout, block('text'));
});
