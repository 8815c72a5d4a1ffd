"""Every group of calls, blocking and asynchronous."""

import asyncio
import pickle
import threading
import time

from atoll_sandbox import AsyncClient, AtollError, Client, NotFoundError


def refused(kind, action, *arguments, **options):
    try:
        action(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{action} did not fail")


def sandboxes(atoll):
    print("sandboxes")
    box = atoll.create(name="py", metadata={"a": "1"}, env={"X": "y"}, max_lifetime=300)
    assert box.status == "running" and box.name == "py"
    assert atoll.get("py").id == box.id
    assert [one.id for one in atoll.list(metadata={"a": "1"})] == [box.id]
    assert atoll.list(metadata={"a": "2"}) == []
    assert atoll.update(box.id, metadata={"b": "2"}).metadata == {"b": "2"}
    assert atoll.pause(box.id).status == "paused"
    assert atoll.resume(box.id).status == "running"
    assert atoll.stop(box.id).status == "stopped"
    assert atoll.resume(box.id).status == "running"
    assert atoll.wait_for(box.id, "running", timeout=5).id == box.id
    assert refused(AtollError, atoll.wait_for, box.id, "stopped", timeout=0.1).code == "TIMEOUT"
    error = refused(AtollError, atoll.create, name="py")
    assert error.status == 409, error
    assert refused(AtollError, atoll.create, nonsense=1).fields == ["nonsense"]
    assert refused(NotFoundError, atoll.get, "none").code == "NOT_FOUND"
    assert pickle.loads(pickle.dumps(error)).status == 409
    return box


def commands(atoll, box):
    print("commands")
    done = atoll.exec(box.id, "echo $X; echo problem >&2; exit 3")
    assert (done.stdout, done.stderr, done.exit_code) == ("y\n", "problem\n", 3)
    assert atoll.exec(box.id, ["printf", "%s", "a b"]).stdout == "a b"
    late = atoll.exec(box.id, "echo early; sleep 60", timeout=0.5)
    assert late.timed_out and late.stdout == "early\n"
    atoll.run_code(box.id, "python", "x = 6", session="s")
    assert atoll.run_code(box.id, "python", "x * 7", session="s").results == [{"type": "text", "value": "42"}]
    assert atoll.run_code(box.id, "python", "1/0").error.name == "ZeroDivisionError"
    assert atoll.fork_code_context(box.id, "python-s", session="t").id == "python-t"
    assert {one.id for one in atoll.code_contexts(box.id)} >= {"python-s", "python-t"}
    atoll.restart_code_context(box.id, "python-t")
    atoll.remove_code_context(box.id, "python-t")
    assert atoll.create_code_context(box.id, "bash", cwd="/tmp").cwd == "/tmp"
    process = atoll.spawn(box.id, "echo one; echo two >&2; sleep 0.1; exit 7")
    events = list(atoll.logs(box.id, process.pid))
    assert "".join(event.data for event in events if event.kind == "stdout") == "one\n"
    assert "".join(event.data for event in events if event.kind == "stderr") == "two\n"
    assert events[-1].kind == "exit" and events[-1].process.exit_code == 7
    assert atoll.wait(box.id, process.pid).exit_code == 7
    sleeping = atoll.spawn(box.id, "sleep 1000")
    refused(TimeoutError, atoll.wait, box.id, sleeping.pid, timeout=0)
    assert sleeping.pid in [one.pid for one in atoll.processes(box.id) if one.running]
    atoll.kill(box.id, sleeping.pid)
    assert atoll.wait(box.id, sleeping.pid, timeout=10).exit_code == 137


def files(atoll, box):
    print("files")
    assert atoll.write(box.id, "/tmp/deep/down/file", "text", mode=0o600).permissions == "0600"
    assert atoll.read_text(box.id, "/tmp/deep/down/file") == "text"
    data = bytes(range(256)) * 10_000
    atoll.write(box.id, "data", data)
    assert atoll.read_bytes(box.id, "/workspace/data") == data
    assert b"".join(atoll.download(box.id, "data")) == data
    assert atoll.stat(box.id, "data").size == len(data)
    assert "data" in [entry.name for entry in atoll.list_files(box.id)]
    atoll.mkdir(box.id, "some/where")
    atoll.move(box.id, "data", "some/where/else")
    assert atoll.exists(box.id, "some/where/else") and not atoll.exists(box.id, "data")
    atoll.remove(box.id, "some", recursive=True)
    refused(NotFoundError, atoll.read_bytes, box.id, "some/where/else")
    atoll.write(box.id, "with space & ünïcode", "x")
    assert atoll.read_text(box.id, "with space & ünïcode") == "x"


def states(atoll, box):
    print("states")
    atoll.write(box.id, "kept", "before")
    snapshot = atoll.snapshot(box.id, message="m", tags=["t"])
    assert [one.id for one in atoll.snapshots(box.id)] == [snapshot.id]
    atoll.write(box.id, "kept", "after")
    copies = atoll.fork(box.id, count=2)
    assert [atoll.read_text(copy.id, "kept") for copy in copies] == ["after"] * 2
    assert atoll.restore(box.id, snapshot.id).status == "running"
    assert atoll.read_text(box.id, "kept") == "before"
    made = atoll.create(from_snapshot="t")
    assert atoll.read_text(made.id, "kept") == "before"
    for one in [*copies, made]:
        atoll.delete(one.id)
    atoll.delete_snapshot(snapshot.id)
    assert atoll.snapshots() == []


def the_rest(atoll, box):
    print("the rest")
    kinds = [event.type for event in atoll.events(box.id, follow=False)]
    assert kinds[0] == "sandbox.created" and "sandbox.paused" in kinds, kinds
    stream = atoll.events(box.id)
    seen = next(stream)
    assert seen.sandbox_id == box.id
    stream.close()
    atoll.set_secret("TOKEN", "s3cret")
    assert [secret.name for secret in atoll.secrets()] == ["TOKEN"]
    private = atoll.create(secrets=["TOKEN"])
    assert atoll.exec(private.id, "echo $TOKEN").stdout == "s3cret\n"
    atoll.delete(private.id)
    atoll.delete_secret("TOKEN")
    token = atoll.create_token(box.id, "read-only", minutes=5)
    assert token.token.count(".") == 2
    assert atoll.usage(box.id)["sandboxId"] == box.id
    assert atoll.whoami() and atoll.system() and atoll.templates()


def threads_and_pickles(atoll, box):
    print("threads and pickles")
    copy = pickle.loads(pickle.dumps(atoll))
    results = {}
    workers = [
        threading.Thread(target=lambda i=i: results.update({i: copy.exec(box.id, f"echo {i}").stdout})) for i in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == {i: f"{i}\n" for i in range(8)}, results
    copy.close()


async def asynchronous():
    print("asynchronous")
    async with AsyncClient() as atoll:
        box = await atoll.create()
        results = await asyncio.gather(*(atoll.exec(box.id, f"echo {i}") for i in range(8)))
        assert [done.stdout for done in results] == [f"{i}\n" for i in range(8)]
        process = await atoll.spawn(box.id, "echo one; exit 2")
        events = [event async for event in atoll.logs(box.id, process.pid)]
        assert events[0].data == "one\n" and events[-1].process.exit_code == 2
        begun = time.monotonic()
        sleeping = await atoll.spawn(box.id, "sleep 100")
        try:
            await atoll.wait(box.id, sleeping.pid, timeout=0.2)
            raise AssertionError("it did not time out")
        except TimeoutError:
            assert time.monotonic() - begun < 20
        await atoll.write(box.id, "f", b"12345")
        assert b"".join([piece async for piece in atoll.download(box.id, "f")]) == b"12345"
        try:
            await atoll.get("none")
            raise AssertionError("there is none")
        except NotFoundError:
            pass
        await atoll.delete(box.id)


def main():
    with Client() as atoll:
        box = sandboxes(atoll)
        commands(atoll, box)
        files(atoll, box)
        states(atoll, box)
        the_rest(atoll, box)
        threads_and_pickles(atoll, box)
        atoll.delete(box.id)
        refused(NotFoundError, atoll.exec, box.id, "true")
    asyncio.run(asynchronous())
    print("ok")


main()
