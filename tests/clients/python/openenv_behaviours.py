"""What OpenEnv asks of a backend: the behaviours that its own tests of the container backend check, and what its
harness and trainers rely on beyond them."""

import multiprocessing
import pickle
import threading
import time

from protocols import BgJob, SandboxBackend, SandboxHandle

from atoll_sandbox import AtollSandboxBackend, Client

BEHAVIOURS = []


def behaviour(function):
    BEHAVIOURS.append(function)
    return function


def refused(kind, action, *arguments, **options):
    try:
        action(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{action} did not fail")


@behaviour
def echo(box):
    done = box.exec("echo hello")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "hello\n", "")


@behaviour
def a_failing_command_is_a_result(box):
    assert box.exec("exit 42").exit_code == 42


@behaviour
def standard_error_is_apart(box):
    done = box.exec("echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


@behaviour
def variables_of_a_command(box):
    assert box.exec("echo $A", envs={"A": "b"}).stdout == "b\n"


@behaviour
def directory_of_a_command(box):
    assert box.exec("pwd", cwd="/tmp").stdout == "/tmp\n"


@behaviour
def write_and_read(box):
    box.write_text("/tmp/file", "content")
    assert box.read_text("/tmp/file") == "content"


@behaviour
def directories_above_are_made(box):
    box.write_text("/home/user/a/b/c", "deep")
    assert box.read_text("/home/user/a/b/c") == "deep"


@behaviour
def special_characters(box):
    text = "quotes ' \" `backticks` $HOME \\ newline\nand ünïcode 日本 \t end"
    box.write_text("/tmp/special", text)
    assert box.read_text("/tmp/special") == text
    assert box.exec("cat /tmp/special").stdout == text


@behaviour
def a_missing_file(box):
    refused(FileNotFoundError, box.read_text, "/tmp/none")


@behaviour
def existence(box):
    box.write_text("/tmp/there/file", "")
    assert box.exists("/tmp/there/file") and box.exists("/tmp/there") and not box.exists("/tmp/nowhere")


@behaviour
def a_job_is_waited_for(box):
    job = box.start_bg("exit 5")
    assert isinstance(job.pid, int) and job.wait(timeout=10) == 5
    assert job.wait() == 5


@behaviour
def a_job_is_killed_with_all_that_it_started(box):
    job = box.start_bg("sleep 4321 & sleep 4321; wait")
    job.kill()
    assert job.wait(timeout=10) != 0
    job.kill()
    assert box.exec("pgrep -fc '^sleep 4321'").stdout.strip() == "0"


@behaviour
def a_job_that_takes_too_long(box):
    job = box.start_bg("sleep 100")
    refused(TimeoutError, job.wait, timeout=0.2)
    refused(TimeoutError, job.wait, timeout=0)
    job.kill()


@behaviour
def a_job_has_its_variables_and_directory(box):
    job = box.start_bg("echo $A > out; pwd >> out", envs={"A": "b"}, cwd="/tmp")
    assert job.wait(timeout=10) == 0
    assert box.read_text("/tmp/out") == "b\n/tmp\n"


@behaviour
def variables_of_the_sandbox(box):
    assert box.exec("echo $FROM_CREATE").stdout == "yes\n"
    assert box.start_bg("test \"$FROM_CREATE\" = yes").wait(timeout=10) == 0


@behaviour
def labels(box):
    assert box.raw.get(box.sandbox_id).metadata == {"episode_id": "e1"}


@behaviour
def protocols(box):
    assert isinstance(box, SandboxHandle)
    assert isinstance(box.start_bg("true"), BgJob)
    assert isinstance(AtollSandboxBackend(), SandboxBackend)


@behaviour
def a_command_that_takes_too_long(box):
    done = box.exec("echo early; echo problem >&2; sleep 60", timeout=0.5)
    assert (done.exit_code, done.stdout) == (124, "early\n")
    assert done.stderr == "problem\n\n[timed out after 0.5s]", done.stderr


@behaviour
def a_file_that_is_being_written(box):
    job = box.start_bg("for i in $(seq 200); do echo line $i >> /tmp/growing; done")
    while not box.exists("/tmp/growing"):
        pass
    assert box.read_text("/tmp/growing").startswith("line 1\n")
    job.wait(timeout=10)


@behaviour
def large_traces(box):
    text = "x" * 30_000_000
    box.write_text("/tmp/trace", text)
    assert box.read_text("/tmp/trace") == text


def killed_from_another_thread():
    box = AtollSandboxBackend().create(timeout_s=60)
    job = box.start_bg("sleep 1000")
    outcome = []

    def wait():
        try:
            outcome.append(job.wait())
        except Exception as error:
            outcome.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    box.kill()
    waiting.join(timeout=30)
    assert not waiting.is_alive() and outcome, outcome
    box.kill()  # again
    refused(Exception, box.exec, "true")


def in_a_child(backend, queue):
    box = backend.create(timeout_s=60)
    queue.put(box.exec("echo from a child").stdout)
    box.kill()


def pickled_into_a_process():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_a_child, args=(AtollSandboxBackend(), queue))
    child.start()
    assert queue.get(timeout=60) == "from a child\n"
    child.join(timeout=60)
    assert isinstance(pickle.loads(pickle.dumps(AtollSandboxBackend())), AtollSandboxBackend)


def the_server_ends_what_is_forgotten():
    box = AtollSandboxBackend().create(timeout_s=1, image="base")
    end = time.monotonic() + 20
    with Client() as atoll:
        while any(one.id == box.sandbox_id for one in atoll.list()):
            assert time.monotonic() < end, "it is still there"
            time.sleep(0.05)


def main():
    backend = AtollSandboxBackend()
    box = backend.create(timeout_s=300, envs={"FROM_CREATE": "yes"}, metadata={"episode_id": "e1"})
    for check in BEHAVIOURS:
        print(check.__name__, flush=True)
        check(box)
    box.kill()
    box.kill()
    for check in (killed_from_another_thread, pickled_into_a_process, the_server_ends_what_is_forgotten):
        print(check.__name__, flush=True)
        check()
    print(len(BEHAVIOURS) + 3, "behaviours")
    print("ok")


if __name__ == "__main__":
    main()
