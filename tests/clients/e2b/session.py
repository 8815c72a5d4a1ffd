"""One session with E2B's Python package, blocking and then asynchronous."""

import asyncio
import datetime
import pathlib
import tempfile
import time

import e2b
import httpx
from e2b import AsyncSandbox, Sandbox
from e2b.sandbox.commands.command_handle import CommandExitException, PtySize

DEADLINE = 20


def part(name):
    print(name, flush=True)


def refused(kind, action, *arguments, **options):
    try:
        action(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{action} did not fail")


def wait_until(condition, what):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def supports(owner, name):
    return hasattr(owner, name)


def commands(box):
    part("commands")
    done = box.commands.run("echo $GREETING; echo problem >&2; pwd; whoami")
    assert done.stdout == "hello\n/home/user\nuser\n", done
    assert (done.stderr, done.exit_code) == ("problem\n", 0)
    error = refused(CommandExitException, box.commands.run, "echo out; exit 42")
    assert (error.exit_code, error.stdout) == (42, "out\n")
    done = box.commands.run("whoami; pwd; echo $X", user="root", cwd="/tmp", envs={"X": "y"})
    assert done.stdout == "root\n/tmp\ny\n", done
    pieces = []
    box.commands.run("for i in 1 2 3; do echo $i; done", on_stdout=pieces.append)
    assert "".join(pieces) == "1\n2\n3\n"
    assert len(box.commands.run("head -c 3000000 /dev/zero | tr '\\0' x").stdout) == 3_000_000
    refused(e2b.TimeoutException, box.commands.run, "sleep 60", timeout=0.5)

    part("background")
    job = box.commands.run('read line; echo "got $line"; cat', background=True, stdin=True)
    assert job.pid in [process.pid for process in box.commands.list()]
    box.commands.send_stdin(job.pid, "a line\n")
    if supports(box.commands, "stream_input"):
        box.commands.stream_input(job.pid, ["the ", "rest"])
    else:
        box.commands.send_stdin(job.pid, "the rest")
    if supports(box.commands, "close_stdin"):
        box.commands.close_stdin(job.pid)
        assert job.wait().stdout == "got a line\nthe rest"
    else:
        assert job.kill()
    sleeping = box.commands.run("sleep 1000", background=True)
    assert box.commands.connect(sleeping.pid).kill() is True
    refused(CommandExitException, sleeping.wait)
    assert box.commands.kill(sleeping.pid) is False
    refused(e2b.NotFoundException, box.commands.connect, 999_999)

    part("terminal")
    terminal = box.pty.create(PtySize(rows=24, cols=80), timeout=0)
    box.pty.resize(terminal.pid, PtySize(rows=50, cols=120))
    box.pty.send_stdin(terminal.pid, b"echo size $(stty size)\nexit 3\n")
    screen = bytearray()
    error = refused(CommandExitException, terminal.wait, on_pty=screen.extend)
    assert error.exit_code == 3
    assert b"size 50 120" in screen, screen


def files(box):
    part("files")
    assert box.files.write("notes/today.txt", "first line").path == "/home/user/notes/today.txt"
    assert box.files.read("notes/today.txt") == "first line"
    box.files.write("data.bin", bytes([0, 255, 10, 13]))
    assert bytes(box.files.read("/home/user/data.bin", format="bytes")) == bytes([0, 255, 10, 13])
    box.files.write_files([{"path": "several/a", "data": "A"}, {"path": "several/b", "data": "B"}])
    assert sorted(entry.name for entry in box.files.list("several")) == ["a", "b"]
    deep = {entry.path: entry.type.value for entry in box.files.list("/home/user", depth=2)}
    assert deep["/home/user/several/a"] == "file" and deep["/home/user/several"] == "dir", deep
    assert box.files.make_dir("several/deeper/still") is True
    assert box.files.make_dir("several/deeper/still") is False
    assert box.files.exists("several/deeper")
    assert box.files.rename("several/a", "several/c").path == "/home/user/several/c"
    about = box.files.get_info("several/c")
    assert (about.size, about.owner, about.permissions) == (1, "user", "-rw-r--r--"), about
    box.files.remove("several")
    assert not box.files.exists("several")
    refused(e2b.NotFoundException, box.files.read, "nothing-here")
    box.files.write("large", "x" * 5_000_000)
    assert len(box.files.read("large")) == 5_000_000
    assert sum(map(len, box.files.read("large", format="stream"))) == 5_000_000

    part("watch")
    box.files.make_dir("watched")
    watch = box.files.watch_dir("watched", recursive=True)
    happened = []

    def saw(*wanted):
        happened.extend((event.type.value, event.name) for event in watch.get_new_events())
        return all(event in happened for event in wanted)

    box.files.write("watched/one", "1")
    wait_until(lambda: saw(("create", "one")), "a file appears")
    box.files.remove("watched/one")
    wait_until(lambda: saw(("remove", "one")), "a file goes")
    watch.stop()

    part("signed URLs")
    up = box.upload_url("through-url.txt", use_signature_expiration=60)
    assert httpx.post(up, files={"file": ("through-url.txt", b"by form")}).status_code == 200
    down = box.download_url("through-url.txt", use_signature_expiration=60)
    assert httpx.get(down).text == "by form"
    assert httpx.get(down.replace("signature=v1_", "signature=v1_x")).status_code == 502


def lists():
    part("lists")
    others = [Sandbox.create("base", metadata={"group": "py", "i": str(i)}) for i in range(2)]
    pages = Sandbox.list(query=e2b.SandboxQuery(metadata={"group": "py"}), limit=1)
    listed = []
    while pages.has_next:
        listed += pages.next_items()
    assert sorted(one.sandbox_id for one in listed) == sorted(one.sandbox_id for one in others)
    assert others[0].kill() is True
    assert Sandbox.kill(others[0].sandbox_id) is False
    others[1].kill()


def states(box):
    part("pause")
    box.commands.run("echo kept > kept")
    job = box.commands.run("sleep 500", background=True)
    (box.pause if supports(box, "pause") else box.beta_pause)()
    assert box.get_info().state.value == "paused"
    assert box.is_running() is False
    again = Sandbox.connect(box.sandbox_id, timeout=120)
    assert again.files.read("kept") == "kept\n"
    assert job.pid in [process.pid for process in again.commands.list()], "processes live on"

    part("timeouts")
    again.set_timeout(300)
    assert again.get_info().end_at > datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=200)

    part("snapshots")
    if supports(again, "create_snapshot"):
        snapshot = again.create_snapshot()
        copy = Sandbox.create(snapshot.snapshot_id)
        assert copy.files.read("kept") == "kept\n"
        copy.kill()
        assert Sandbox.delete_snapshot(snapshot.snapshot_id) is True
    if supports(again, "fork"):
        (forked,) = again.fork()
        if isinstance(forked, Exception):
            raise forked
        assert forked.files.read("kept") == "kept\n"
        forked.kill()

    part("metrics")
    (measured,) = again.get_metrics()
    assert 0 < measured.mem_used < measured.mem_total
    assert measured.cpu_used_pct >= 0 and measured.cpu_count >= 1
    return again


def templates():
    part("templates")
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "app.txt").write_text("from the context")
    template = (
        e2b.Template(file_context_path=str(folder))
        .from_template("base")
        .set_envs({"BUILT": "yes"})
        .set_workdir("/home/user/app")
        .copy("app.txt", "copied.txt")
        .run_cmd('cat copied.txt > made && echo "while building: $BUILT"')
    )
    said = []
    e2b.Template.build(template, "built-by-py", on_build_logs=lambda entry: said.append(entry.message))
    assert any("while building: yes" in line for line in said), said
    built = Sandbox.create("built-by-py")
    done = built.commands.run("pwd; cat made; echo; echo $BUILT")
    assert done.stdout == "/home/user/app\nfrom the context\nyes\n", done
    built.kill()
    broken = e2b.Template().from_template("base").run_cmd("exit 7")
    error = refused(e2b.BuildException, e2b.Template.build, broken, "broken-by-py")
    assert "exit code 7" in str(error), error
    assert Sandbox.delete_snapshot("built-by-py") is True


async def asynchronous():
    part("asynchronous")
    box = await AsyncSandbox.create("base", timeout=60)
    results = await asyncio.gather(*(box.commands.run(f"echo {i}") for i in range(8)))
    assert [done.stdout for done in results] == [f"{i}\n" for i in range(8)]
    events = asyncio.Queue()
    await box.files.make_dir("watched")
    watch = await box.files.watch_dir("watched", on_event=events.put)
    await box.files.write("watched/one", "1")
    while (await asyncio.wait_for(events.get(), DEADLINE)).name != "one":
        pass
    await watch.stop()
    job = await box.commands.run("cat", background=True, stdin=True)
    await box.commands.send_stdin(job.pid, "x")
    assert await box.commands.kill(job.pid) is True
    assert await box.kill() is True


def main():
    part("create")
    box = Sandbox.create("base", timeout=120, metadata={"purpose": "test", "with space": "a&b=c"}, envs={"GREETING": "hello"})
    assert box.is_running()
    info = box.get_info()
    assert info.metadata["with space"] == "a&b=c" and info.template_id == "base", info
    commands(box)
    files(box)
    lists()
    again = states(box)
    templates()
    asyncio.run(asynchronous())
    part("end")
    assert again.kill() is True
    assert again.is_running() is False
    refused(e2b.SandboxException, again.commands.run, "true")
    refused(e2b.SandboxException, Sandbox.connect, again.sandbox_id)
    print("ok")


main()
