// One session with E2B's JavaScript package: node session.mjs PATH/TO/e2b/dist/index.mjs
import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { Sandbox, Template, CommandExitError, NotFoundError, TimeoutError } = await import(pathToFileURL(process.argv[2]))

const part = (name) => console.log(name)
const bytes = (text) => new TextEncoder().encode(text)

// Something that other code brings about: waited for, never slept for.
function arrival() {
  let resolve
  const promise = new Promise((done) => (resolve = done))
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error('nothing came')), 20_000).unref())
  return { resolve, promise: Promise.race([promise, late]) }
}

part('create')
const sandbox = await Sandbox.create('base', {
  timeoutMs: 120_000,
  metadata: { purpose: 'test', 'with space': 'a&b=c' },
  envs: { GREETING: 'hello' },
})
assert.equal(await sandbox.isRunning(), true)
const info = await sandbox.getInfo()
assert.equal(info.sandboxId, sandbox.sandboxId)
assert.equal(info.templateId, 'base')
assert.equal(info.metadata['with space'], 'a&b=c')
assert.ok(info.endAt > new Date(Date.now() + 60_000))

part('commands')
const greeting = await sandbox.commands.run('echo $GREETING; echo problem >&2; pwd; whoami')
assert.equal(greeting.stdout, 'hello\n/home/user\nuser\n')
assert.equal(greeting.stderr, 'problem\n')
assert.equal(greeting.exitCode, 0)
await assert.rejects(sandbox.commands.run('echo out; exit 42'), (error) => {
  assert.ok(error instanceof CommandExitError)
  assert.equal(error.exitCode, 42)
  assert.equal(error.stdout, 'out\n')
  return true
})
const asRoot = await sandbox.commands.run('whoami; pwd; echo $X', { user: 'root', cwd: '/tmp', envs: { X: 'y' } })
assert.equal(asRoot.stdout, 'root\n/tmp\ny\n')
const pieces = []
await sandbox.commands.run('for i in 1 2 3; do echo $i; done', { onStdout: (data) => pieces.push(data) })
assert.equal(pieces.join(''), '1\n2\n3\n')
const long = await sandbox.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
assert.equal(long.stdout.length, 3_000_000)
await assert.rejects(sandbox.commands.run('sleep 60', { timeoutMs: 500 }), TimeoutError)

part('background')
const background = await sandbox.commands.run('read line; echo "got $line"; cat', { background: true, stdin: true })
assert.ok((await sandbox.commands.list()).some((process) => process.pid === background.pid))
const seen = arrival()
const watching = await sandbox.commands.connect(background.pid, {
  onStdout: (data) => data.includes('got') && seen.resolve(data),
})
await sandbox.commands.sendStdin(background.pid, 'a line\n')
assert.equal(await seen.promise, 'got a line\n')
if (sandbox.commands.closeStdin) {
  await sandbox.commands.sendStdin(background.pid, 'the rest')
  await sandbox.commands.closeStdin(background.pid)
  const ended = await background.wait()
  assert.equal(ended.stdout, 'got a line\nthe rest')
} else {
  assert.equal(await background.kill(), true)
}
await watching.disconnect()
const sleeping = await sandbox.commands.run('sleep 1000', { background: true })
assert.equal(await sleeping.kill(), true)
await assert.rejects(sleeping.wait(), CommandExitError)
assert.equal(await sandbox.commands.kill(sleeping.pid), false)
await assert.rejects(sandbox.commands.connect(999_999), NotFoundError)

part('terminal')
const shown = arrival()
let screen = ''
const terminal = await sandbox.pty.create({
  cols: 80,
  rows: 24,
  timeoutMs: 0,
  onData: (data) => {
    screen += new TextDecoder().decode(data)
    if (screen.includes('size 50 120')) shown.resolve()
  },
})
await sandbox.pty.resize(terminal.pid, { cols: 120, rows: 50 })
await sandbox.pty.sendInput(terminal.pid, bytes('echo size $(stty size)\n'))
await shown.promise
await sandbox.pty.sendInput(terminal.pid, bytes('exit 3\n'))
await assert.rejects(terminal.wait(), (error) => error.exitCode === 3)

part('files')
const written = await sandbox.files.write('notes/today.txt', 'first line')
assert.equal(written.path, '/home/user/notes/today.txt')
assert.equal(await sandbox.files.read('notes/today.txt'), 'first line')
await sandbox.files.write('data.bin', new Uint8Array([0, 255, 10, 13]).buffer)
assert.deepEqual([...(await sandbox.files.read('/home/user/data.bin', { format: 'bytes' }))], [0, 255, 10, 13])
await sandbox.files.write([
  { path: 'several/a', data: 'A' },
  { path: 'several/b', data: 'B' },
])
assert.deepEqual((await sandbox.files.list('several')).map((entry) => entry.name).sort(), ['a', 'b'])
const deep = await sandbox.files.list('/home/user', { depth: 2 })
assert.ok(deep.some((entry) => entry.path === '/home/user/several/a' && entry.type === 'file'))
assert.ok(deep.some((entry) => entry.path === '/home/user/several' && entry.type === 'dir'))
assert.equal(await sandbox.files.makeDir('several/deeper/still'), true)
assert.equal(await sandbox.files.makeDir('several/deeper/still'), false)
assert.equal(await sandbox.files.exists('several/deeper'), true)
const moved = await sandbox.files.rename('several/a', 'several/c')
assert.equal(moved.path, '/home/user/several/c')
const about = await sandbox.files.getInfo('several/c')
assert.equal(about.size, 1)
assert.equal(about.owner, 'user')
assert.equal(about.permissions, '-rw-r--r--')
await sandbox.commands.run('ln -s /etc several/link')
assert.equal((await sandbox.files.getInfo('several/link')).symlinkTarget, '/etc')
await sandbox.files.remove('several')
assert.equal(await sandbox.files.exists('several'), false)
await assert.rejects(sandbox.files.read('nothing-here'), NotFoundError)
const large = 'x'.repeat(5_000_000)
await sandbox.files.write('large', large)
assert.equal((await sandbox.files.read('large')).length, large.length)
await sandbox.files.write('root-owned', 'r', { user: 'root' })
assert.equal((await sandbox.files.getInfo('/root/root-owned', { user: 'root' })).owner, 'root')

part('watch')
await sandbox.files.makeDir('watched')
const happened = []
const all = arrival()
const watch = await sandbox.files.watchDir(
  'watched',
  (event) => {
    happened.push(`${event.type} ${event.name}`)
    if (['create below/one', 'remove below/one'].every((line) => happened.includes(line))) all.resolve()
  },
  { recursive: true },
)
await sandbox.commands.run('mkdir watched/below && touch watched/below/first')
while (!happened.some((line) => line.endsWith('below'))) await new Promise((done) => setTimeout(done, 5))
await sandbox.files.write('watched/below/one', '1')
await sandbox.files.remove('watched/below/one')
await all.promise.catch((error) => {
  throw new Error(`${error.message}: ${happened.join(', ')}`)
})
await watch.stop()

part('signed URLs')
const up = await sandbox.uploadUrl('through-url.txt', { useSignatureExpiration: 60 })
const form = new FormData()
form.append('file', new Blob(['by form']), 'through-url.txt')
assert.equal((await fetch(up, { method: 'POST', body: form })).status, 200)
const down = await sandbox.downloadUrl('through-url.txt', { useSignatureExpiration: 60 })
assert.equal(await (await fetch(down)).text(), 'by form')
assert.equal((await fetch(down.replace('signature=v1_', 'signature=v1_x'))).status, 502)

part('lists')
const others = await Promise.all([1, 2].map((i) => Sandbox.create('base', { metadata: { group: 'listed', i: `${i}` } })))
const paginator = Sandbox.list({ query: { metadata: { group: 'listed' } }, limit: 1 })
const listed = []
while (paginator.hasNext) listed.push(...(await paginator.nextItems()))
assert.deepEqual(listed.map((one) => one.sandboxId).sort(), others.map((one) => one.sandboxId).sort())
assert.equal(await others[0].kill(), true)
assert.equal(await Sandbox.kill(others[0].sandboxId), false)
await others[1].kill()

part('pause')
await sandbox.commands.run('echo kept > kept')
const ticking = await sandbox.commands.run('sleep 500', { background: true })
const pausing = sandbox.pause ?? sandbox.betaPause
await pausing.call(sandbox)
assert.equal((await sandbox.getInfo()).state, 'paused')
assert.equal(await sandbox.isRunning(), false)
const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 120_000 })
assert.equal(await again.files.read('kept'), 'kept\n')
assert.ok((await again.commands.list()).some((process) => process.pid === ticking.pid), 'processes live on')

part('timeouts')
await again.setTimeout(300_000)
assert.ok((await again.getInfo()).endAt > new Date(Date.now() + 200_000))

part('snapshots')
if (again.createSnapshot) {
  const snapshot = await again.createSnapshot()
  const copy = await Sandbox.create(snapshot.snapshotId)
  assert.equal(await copy.files.read('kept'), 'kept\n')
  await copy.kill()
  assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
}
if (again.fork) {
  const [forked] = await again.fork()
  if (forked instanceof Error) throw forked
  assert.equal(await forked.files.read('kept'), 'kept\n')
  await forked.kill()
}

part('metrics')
const [measured] = await again.getMetrics()
assert.ok(measured.memUsed > 0 && measured.memTotal > measured.memUsed)
assert.ok(measured.cpuUsedPct >= 0 && measured.cpuCount >= 1)

part('templates')
const folder = mkdtempSync(join(tmpdir(), 'atoll-'))
writeFileSync(join(folder, 'app.txt'), 'from the context')
const template = Template({ fileContextPath: folder })
  .fromTemplate('base')
  .setEnvs({ BUILT: 'yes' })
  .setWorkdir('/home/user/app')
  .copy('app.txt', 'copied.txt')
  .runCmd('cat copied.txt > made && echo "while building: $BUILT"')
const said = []
await Template.build(template, 'built-by-js', { onBuildLogs: (entry) => said.push(entry.message) })
assert.ok(said.some((line) => line.includes('while building: yes')), said.join('\n'))
const built = await Sandbox.create('built-by-js')
assert.equal((await built.commands.run('pwd; cat made; echo; echo $BUILT')).stdout, '/home/user/app\nfrom the context\nyes\n')
await built.kill()
await assert.rejects(Template.build(Template().fromTemplate('base').runCmd('exit 7'), 'broken-by-js'), /exit code 7/)
assert.equal(await Sandbox.deleteSnapshot('built-by-js'), true)

part('end')
assert.equal(await again.kill(), true)
assert.equal(await again.isRunning(), false)
await assert.rejects(again.commands.run('true'))
await assert.rejects(Sandbox.connect(again.sandboxId))
console.log('ok')
process.exit(0)
