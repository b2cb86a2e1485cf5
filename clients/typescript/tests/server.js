// A server that tests kill and start again at the same address.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const TOKEN = `ns_ZGVmYXVsdA_${'0'.repeat(64)}`;
const BINARY = process.env.TREFOIL_BINARY ?? 'trefoil';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export class Server {
  static async start() {
    const server = new Server();
    server.directory = mkdtempSync(join(tmpdir(), 'trefoil-'));
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    await server.rise();
    return server;
  }

  async rise() {
    const ports = ['--port', String(this.port), '--grpc-port', 'off', '--resp-port', 'off'];
    const rest = ['--data-dir', this.directory, '--token', TOKEN];
    this.process = spawn(BINARY, ['serve', ...ports, ...rest], { stdio: 'ignore' });
    for (let n = 0; n < 1000; n++) {
      const ready = await fetch(`${this.url}/ready`).catch(() => null);
      if (ready?.ok) return;
      if (this.process.exitCode !== null) throw new Error('the server ended');
      await sleep(10);
    }
    throw new Error('the server did not start');
  }

  async kill() {
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }

  async stop() {
    await this.kill();
    rmSync(this.directory, { recursive: true });
  }
}
