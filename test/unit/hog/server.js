// An MCP server whose tools use up memory, processes and processor time (test/unit/boot).
const { spawn } = require('node:child_process');
const { readFileSync } = require('node:fs');

const kept = [];
const tools = {
  hello: () => 'hello',
  whereami: () => readFileSync('/proc/self/cgroup', 'utf8').trim(),
  memory: () => { setInterval(() => kept.push(Buffer.alloc(16 << 20, 1)), 5); return 'taking memory'; },
  // A child process uses up memory while the app does not: the kernel kills both.
  childMemory: () => { spawn(process.execPath, ['-e', 'const kept = []; setInterval(() => kept.push(Buffer.alloc(16 << 20, 1)), 5)'], { stdio: 'ignore' }); return 'taking memory'; },
  forks: () => { spawn('sh', ['-c', 'f() { f | f & }; f; sleep 60'], { stdio: 'ignore' }); return 'forking'; },
  // Chains of processes that exit immediately, each in its own session.
  chains: () => {
    const link = 'setsid sh "$0" & exit';
    for (let i = 0; i < 8; i++) spawn('sh', ['-c', 'echo \'setsid sh "$0" & exit\' > "$TMPDIR/link"; exec sh "$TMPDIR/link"'], { stdio: 'ignore', detached: true });
    return link;
  },
  spin: () => { for (let i = 0; i < 4; i++) spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }); return 'spinning'; },
  // Returns how much work can be done in a second.
  work: () => { let n = 0; for (const end = Date.now() + 1000; Date.now() < end; n++) Math.sqrt(n); return String(n); },
};

let rest = '';
process.stdin.on('data', (data) => {
  const lines = (rest + data).split('\n');
  rest = lines.pop();
  for (const line of lines.filter(Boolean)) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    let result = {};
    if (method === 'initialize') result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'hog', version: '1.0.0' } };
    if (method === 'tools/list') result = { tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) };
    if (method === 'tools/call') result = { content: [{ type: 'text', text: tools[params.name]() }] };
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
  }
});
process.stdin.on('end', () => process.exit());
