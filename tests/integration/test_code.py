#!/usr/bin/env python3
"""Code in persistent kernels: variables, results, errors, time limits, keys, deaths, restarts, branches."""

import base64
import json
import threading
from http.client import HTTPException

import fixture
import product
from fixture import TIME_FACTOR, AtollCase, cli, http, in_parallel, wait_until

# A red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="


class CodeCase(AtollCase):
    def setUp(self):
        super().setUp()
        self.box = self.create()

    def ask(self, language, source, box=None, timeout=90, **options):
        body = {"language": language, "source": source, **options}
        return (box or self.box).runtime("POST", "/code/run", body, timeout=timeout)

    def run_code(self, language, source, **options):
        reply = self.ask(language, source, **options)
        self.assertEqual(reply.status, 200, reply)
        return reply.json["result"]

    def value(self, language, source, **options):
        """The text of its last expression."""
        result = self.run_code(language, source, **options)
        self.assertNotIn("error", result, result)
        texts = [part["value"] for part in result["results"] if part["type"] == "text"]
        self.assertEqual(len(texts), 1, result)
        return texts[0]

    def contexts(self):
        return {one["id"]: one for one in self.box.runtime("GET", "/code/contexts").json["data"]}

    def context(self, method, tail, body=None):
        return self.box.runtime(method, "/code/contexts" + tail, body)

    def processes(self):
        """The labels of what runs."""
        return [one["command"] for one in self.box.runtime("GET", "/process").json["data"] if one["running"]]


class Cells(CodeCase):
    def test_variables_persist_in_each_language(self):
        self.run_code("python", "x = 40\ndef f(y):\n    return x + y")
        self.assertEqual(self.value("python", "f(2)"), "42")
        self.run_code("node", "const x = 40; class A { get y() { return 2 } }")
        self.assertEqual(self.value("javascript", "x + new A().y"), "42")
        self.run_code("node", "const x = 41  // again")
        self.assertEqual(self.value("node", "x"), "41")
        self.run_code("typescript", "interface P { n: number }\nconst p: P = { n: 42 }\nenum E { One = 1 }")
        self.assertEqual(self.value("typescript", "(p.n as number) + E.One"), "43")
        self.run_code("bash", "x=42; f() { echo $((x + $1)); }; cd /tmp")
        self.assertEqual(self.run_code("bash", "f 1; pwd")["stdout"], "43\n/tmp\n")

    def test_output_of_programs_and_their_children(self):
        code = "import sys, subprocess\nprint('äöü €', 1)\nprint('err', file=sys.stderr)\n" \
               "subprocess.run('echo child; echo bad >&2', shell=True)\nprint('end')"
        result = self.run_code("python", code)
        self.assertEqual(result["stdout"], "äöü € 1\nchild\nend\n")
        self.assertEqual(result["stderr"], "err\nbad\n")
        self.assertEqual(result["exitCode"], 0)
        result = self.run_code("node", "console.log('a'); console.error('b'); "
                                       "require('child_process').execSync('echo c', {stdio: 'inherit'}); 0")
        self.assertEqual((result["stdout"], result["stderr"]), ("a\nc\n", "b\n"))

    def test_awaiting_and_imports(self):
        self.assertEqual(self.value("python", "import asyncio\nawait asyncio.sleep(0.01)\n5"), "5")
        code = "import { join } from 'path'\nimport os from 'os'\nconst v = await Promise.resolve(6)\njoin('a', 'b') + v"
        self.assertEqual(self.value("node", code), "a/b6")
        self.assertEqual(self.value("node", "join('c', 'd') + v + typeof os.cpus"), "c/d6function")
        self.assertEqual(self.value("node", "(async () => { await null; return 7 })()"), "7")

    def test_rich_results(self):
        code = f"""
import base64
class Picture:
    def _repr_png_(self): return base64.b64decode("{PNG}")
class Page:
    def _repr_html_(self): return "<b>x</b>"
class Drawing:
    def _repr_svg_(self): return "<svg/>"
class Formula:
    def _repr_latex_(self): return "$x$"
class Many:
    def _repr_mimebundle_(self, include=None, exclude=None): return {{"text/markdown": "# t", "text/plain": "t"}}
display(Picture()); display(Page()); display(Drawing()); display(Formula()); display(Many())
display({{"a": [1, None]}}); display("words")
Page()
"""
        parts = self.run_code("python", code)["results"]
        self.assertEqual(parts[0], {"type": "image", "format": "png", "data": PNG})
        self.assertEqual(parts[1], {"type": "html", "value": "<b>x</b>"})
        svg = base64.b64encode(b"<svg/>").decode()
        self.assertEqual(parts[2], {"type": "image", "format": "svg", "data": svg})
        self.assertEqual([part["value"] for part in parts[3:5]], ["$x$", "# t"])
        self.assertEqual(parts[5], {"type": "json", "value": {"a": [1, None]}})
        self.assertEqual(parts[6], {"type": "text", "value": "'words'"})
        self.assertEqual(parts[7], {"type": "html", "value": "<b>x</b>"})
        parts = self.run_code("node", "display({a: [1]}); display({'text/html': '<i>'}); undefined")["results"]
        self.assertEqual(parts, [{"type": "json", "value": {"a": [1]}}, {"type": "html", "value": "<i>"}])

    def test_errors(self):
        result = self.run_code("python", "def f():\n    return 1 / 0\nf()")
        self.assertEqual(result["exitCode"], 1)
        self.assertEqual(result["error"]["name"], "ZeroDivisionError")
        self.assertEqual(result["error"]["message"], "division by zero")
        self.assertIn("return 1 / 0", result["error"]["traceback"])
        self.assertNotIn("atoll", result["error"]["traceback"])
        self.assertEqual(result["results"][-1]["type"], "error")
        self.assertEqual(self.run_code("python", "def (")["error"]["name"], "SyntaxError")
        self.assertEqual(self.run_code("python", "import sys; sys.exit(3)")["error"]["name"], "SystemExit")
        result = self.run_code("node", "throw new TypeError('bad')")
        self.assertEqual((result["error"]["name"], result["error"]["message"]), ("TypeError", "bad"))
        self.assertEqual(self.run_code("node", "let a = {")["error"]["name"], "SyntaxError")
        self.assertEqual(self.run_code("node", "await nothing()")["error"]["name"], "ReferenceError")
        self.assertEqual(self.run_code("node", "throw 5")["error"]["message"], "5")
        result = self.run_code("bash", "echo a; false")
        self.assertEqual((result["exitCode"], result["stdout"]), (1, "a\n"))
        self.assertNotEqual(self.run_code("bash", "if then")["exitCode"], 0)
        self.assertEqual(self.value("python", "1 + 1"), "2")

    def test_notebook_habits(self):
        self.assertEqual(self.run_code("python", "!echo hi")["stdout"], "hi\n")
        self.assertEqual(self.run_code("python", "%matplotlib inline\n1;")["results"], [])
        self.assertEqual(self.run_code("python", "input()")["error"]["name"], "EOFError")
        self.assertEqual(self.run_code("bash", "cat; echo done")["stdout"], "done\n")

    def test_env_is_for_one_call(self):
        for language, code in [
            ("python", "import os; print(os.environ.get('MINE'), os.environ['HOME'])"),
            ("node", "console.log(process.env.MINE, process.env.HOME)"),
            ("bash", "echo $MINE $HOME"),
        ]:
            with self.subTest(language):
                home = self.run_code(language, code)["stdout"].split()[-1]
                said = self.run_code(language, code, env={"MINE": "it's $x\n", "HOME": "/h"})["stdout"]
                self.assertEqual(said.split(), ["it's", "$x", "/h"])
                after = self.run_code(language, code)["stdout"]
                self.assertNotIn("it's", after)
                self.assertTrue(after.endswith(home + "\n"), after)
        self.assert_error(self.ask("python", "1", env={"A=B": "x"}), 400, "VALIDATION_ERROR", "env.A=B")

    def test_time_is_up_and_variables_stay(self):
        for language, before, code, after in [
            ("python", "x = 5", "import time\nprint('begun', flush=True)\ntime.sleep(60)", "x"),
            ("python", "x = 5", "while True: pass", "x"),
            ("node", "const x = 5", "console.log('begun'); while (true) {}", "x"),
            ("node", "const x = 5", "await new Promise(() => setTimeout(() => {}, 60000))", "x"),
            ("bash", "x=5", "sleep 60; echo not", "echo -n $x"),
            ("bash", "x=5", "while :; do :; done", "echo -n $x"),
        ]:
            with self.subTest(language, code=code):
                self.run_code(language, before)
                result = self.run_code(language, code, timeoutMs=int(500 * TIME_FACTOR))
                self.assertTrue(result["timedOut"], result)
                self.assertEqual((result["exitCode"], result["error"]["name"]), (124, "TimeoutError"))
                self.assertFalse(result["kernelEnded"], result)
                self.assertNotIn("not", result["stdout"])
                result = self.run_code(language, after)
                said = result["stdout"] + "".join(part["value"] for part in result["results"])
                self.assertEqual(said, "5")

    def test_one_that_does_not_heed_is_ended(self):
        code = "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException: pass"
        result = self.run_code("python", code, timeoutMs=300)
        self.assertTrue(result["timedOut"] and result["kernelEnded"], result)
        self.assertIn("variables are lost", result["error"]["message"])
        self.assertEqual(self.value("python", "1"), "1")

    def test_a_client_that_goes_away_ends_what_it_began(self):
        self.run_code("python", "x = 1")
        connection = product.UnixConnection(30)
        body = json.dumps({"language": "python", "source": "open('/tmp/begun', 'w'); import time; time.sleep(600)"})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", self.box.path("/runtime/code/run"), body, headers)
        wait_until(lambda: self.box.exec("/usr/bin/test", "-e", "/tmp/begun")["exitCode"] == 0, 30, "it runs")
        connection.close()
        self.assertEqual(self.value("python", "x", timeout=30), "1")

    def test_lines_as_they_come(self):
        connection = product.UnixConnection(30)
        source = "import time, os\nprint('one')\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\n2"
        body = json.dumps({"language": "python", "source": source, "stream": True})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", self.box.path("/runtime/code/run"), body, headers)
        response = connection.getresponse()
        self.assertEqual(json.loads(response.readline()), {"type": "stdout", "text": "one\n"})
        self.box.exec("/usr/bin/touch", "/tmp/go")
        lines = [json.loads(line) for line in response]
        connection.close()
        self.assertEqual(lines[0], {"type": "result", "part": {"type": "text", "value": "2"}})
        self.assertEqual((lines[-1]["type"], lines[-1]["exitCode"]), ("end", 0))

    def test_bad_requests(self):
        self.assert_error(self.ask("r", "1"), 501, "NOT_SUPPORTED", "language")
        self.assert_error(self.ask("python", "1", sessionId="a b"), 400, "VALIDATION_ERROR", "sessionId")
        self.assert_error(self.ask("python", "1", timeoutMs=-1), 400, "VALIDATION_ERROR", "timeoutMs")
        self.assert_error(self.ask("python", "1", kernel="x"), 400, "VALIDATION_ERROR", "kernel")
        self.assert_error(self.ask("python", "1", idempotencyKey="k", stream=True), 400, "VALIDATION_ERROR",
                          "idempotencyKey")

    def test_missing_programs_are_said(self):
        self.box.exec("/bin/sh", "-c", "mv /usr/bin/node /usr/bin/node.away; mv /usr/bin/python3 /usr/bin/p3.away")
        for language, program in [("node", "node"), ("typescript", "node"), ("python", "python3")]:
            reply = self.ask(language, "1")
            self.assert_error(reply, 501, "NOT_SUPPORTED", "language")
            self.assertIn(f"no {program}", reply.json["message"])
        self.box.exec("/bin/sh", "-c", "mv /usr/bin/p3.away /usr/bin/python3")
        self.assertEqual(self.value("python", "1"), "1")

    def test_from_the_command_line(self):
        self.assertEqual(cli("code", self.box.id, "-c", "x = 42; print('hi')").stdout, "hi\n")
        self.assertEqual(cli("code", self.box.id, "-c", "x").stdout, "42\n")
        self.assertEqual(json.loads(cli("--json", "code", self.box.id, "-c", "x").stdout)["results"][0]["value"], "42")
        done = cli("code", self.box.id, "-l", "bash", "-c", "exit_with() { return $1; }; exit_with 7", check=False)
        self.assertEqual(done.returncode, 7)
        done = cli("code", self.box.id, "-c", "1/0", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ZeroDivisionError", done.stderr)


class Contexts(CodeCase):
    def test_sessions_and_languages_are_apart(self):
        self.run_code("python", "x = 1", sessionId="a")
        self.run_code("python", "x = 2", sessionId="b")
        self.assertEqual(self.value("python", "x", sessionId="a"), "1")
        self.assertEqual(self.run_code("python", "x")["error"]["name"], "NameError")
        self.assertEqual(set(self.contexts()), {"python-a", "python-b", "python-default"})

    def test_create_restart_delete(self):
        made = self.context("POST", "", {"language": "python", "cwd": "/tmp"}).json["data"]
        self.assertEqual((made["cwd"], made["running"]), ("/tmp", True))
        session = made["sessionId"]
        self.assertEqual(self.value("python", "import os; os.getcwd()", sessionId=session), "'/tmp'")
        self.run_code("python", "x = 1", sessionId=session)
        self.assertEqual(self.context("POST", f"/{made['id']}/restart").status, 200)
        self.assertEqual(self.run_code("python", "x", sessionId=session)["error"]["name"], "NameError")
        self.assertEqual(self.value("python", "os = __import__('os'); os.getcwd()", sessionId=session), "'/tmp'")
        self.assertEqual(self.context("DELETE", f"/{made['id']}").status, 200)
        self.assertNotIn(made["id"], self.contexts())
        self.assertEqual([label for label in self.processes() if "kernel" in label], [])
        self.assert_error(self.context("DELETE", f"/{made['id']}"), 404, "NOT_FOUND")
        self.assert_error(self.context("DELETE", "/nonsense"), 404, "NOT_FOUND")
        reply = self.context("POST", "", {"language": "python", "cwd": "/nowhere"})
        self.assertNotEqual(reply.status, 200, reply)

    def test_there_cannot_be_too_many(self):
        for i in range(32):
            self.assertEqual(self.ask("bash", ":", sessionId=f"s{i}").status, 200)
        self.assert_error(self.ask("bash", ":", sessionId="more"), 429, "QUOTA_EXCEEDED")

    def test_cells_of_one_context_wait_for_each_other(self):
        self.run_code("python", "import time\nn = 0")
        code = "k = n; time.sleep(0.05); n = k + 1"
        done = in_parallel([lambda: self.run_code("python", code)["exitCode"]] * 6)
        self.assertEqual(set(done), {0})
        self.assertEqual(self.value("python", "n"), "6")

    def test_a_branch_has_the_variables_and_its_own_life(self):
        self.run_code("python", "x = [1]\ndef f(): return len(x)", sessionId="a")
        made = self.context("POST", "/python-a/fork", {"sessionId": "b"})
        self.assertEqual(made.status, 200, made)
        self.assertEqual(made.json["data"]["id"], "python-b")
        self.run_code("python", "x.append(2)", sessionId="b")
        self.assertEqual(self.value("python", "f()", sessionId="b"), "2")
        self.assertEqual(self.value("python", "f()", sessionId="a"), "1")
        result = self.run_code("python", "import os; os.system('echo sub'); print('out')", sessionId="b")
        self.assertEqual(result["stdout"], "sub\nout\n")
        # A branch of a branch; then the first goes, and the others stay.
        self.assertEqual(self.context("POST", "/python-b/fork", {"sessionId": "c"}).status, 200)
        self.assertTrue(self.run_code("python", "while True: pass", sessionId="b", timeoutMs=300)["timedOut"])
        self.assertEqual(self.value("python", "f()", sessionId="b"), "2")
        self.assertEqual(self.context("DELETE", "/python-a").status, 200)
        self.assertEqual(self.value("python", "f()", sessionId="b"), "2")
        self.assertEqual(self.value("python", "f()", sessionId="c"), "2")
        self.assertEqual(self.context("DELETE", "/python-b").status, 200)
        self.assertEqual(self.value("python", "f()", sessionId="c"), "2")
        self.assert_error(self.context("POST", "/python-c/fork", {"sessionId": "c"}), 409, "CONFLICT", "sessionId")
        self.assertTrue(self.run_code("python", "os._exit(3)", sessionId="c")["kernelEnded"])

    def test_only_living_python_is_branched(self):
        self.run_code("bash", ":")
        self.assert_error(self.context("POST", "/bash-default/fork", {}), 501, "NOT_SUPPORTED")
        self.assert_error(self.context("POST", "/python-default/fork", {}), 404, "NOT_FOUND")


class Keys(CodeCase):
    def test_the_same_key_is_the_same_result(self):
        self.run_code("python", "n = 0")
        first = self.run_code("python", "n += 1\nn", idempotencyKey="k")
        again = self.run_code("python", "n += 1\nn", idempotencyKey="k")
        self.assertEqual(first, again)
        self.assertEqual(self.value("python", "n"), "1")
        self.run_code("python", "n = 10", sessionId="other")
        self.assertEqual(self.value("python", "n += 1\nn", sessionId="other", idempotencyKey="k"), "11")

    def test_also_while_it_runs(self):
        self.run_code("python", "import time\nn = 0")
        code = "n += 1\ntime.sleep(0.5)\nn"
        done = in_parallel([lambda: self.run_code("python", code, idempotencyKey="k")] * 4)
        self.assertEqual({json.dumps(one) for one in done}, {json.dumps(done[0])})
        self.assertEqual(self.value("python", "n"), "1")

    def test_failures_are_tried_again(self):
        self.run_code("python", "n = 0")
        for _ in range(2):
            self.assertEqual(self.run_code("python", "n += 1\n1/0", idempotencyKey="k")["exitCode"], 1)
        self.assertEqual(self.value("python", "n"), "2")


class Lives(CodeCase):
    def test_a_kernel_that_dies_says_so_and_comes_again(self):
        for language, code in [
            ("python", "print('last', flush=True)\nimport os; os.kill(os.getpid(), 9)"),
            ("python", "print('last', flush=True)\nos = __import__('os'); os._exit(4)"),
            ("node", "console.log('last'); process.exit(4)"),
            ("bash", "echo last; exit 4"),
        ]:
            with self.subTest(language, code=code):
                result = self.run_code(language, code)
                self.assertTrue(result["kernelEnded"], result)
                self.assertEqual(result["error"]["name"], "KernelDied")
                self.assertEqual(result["stdout"], "last\n")
                self.assertEqual(self.run_code(language, ":" if language == "bash" else "1")["exitCode"], 0)

    def test_one_that_died_while_nobody_looked_is_replaced(self):
        self.run_code("python", "x = 1")
        pid = next(one["pid"] for one in self.box.runtime("GET", "/process").json["data"] if "kernel" in one["command"])
        self.box.runtime("DELETE", f"/process/{pid}", {})
        self.box.wait(pid)
        self.assertEqual(self.run_code("python", "x")["error"]["name"], "NameError")

    def test_hostile_output(self):
        # Whoever looks can find the channel. What comes of it is their own kernel's end, or nothing.
        for code in [
            "import os\nfor fd in range(3, 300):\n    try: os.write(fd, b'\\x1e garbage ' * 10)\n    except OSError: pass",
            "import os\nos.write(1, b'\\x1e' * 100000 + b'\\xff\\xfe\\x00')",
            "import os\nos.closerange(0, 3)",
            "import os\nos.closerange(0, 300)",
            "import sys\nsys.stdout.close(); sys.stderr.close()",
            "import sys, gc\nk = [o for o in gc.get_objects() if type(o).__name__ == 'Kernel'][0]\n"
            "import os\nos.write(1, b'\\x1e' + k.mark + b'zzzz.')",
            "import sys, gc, os\nk = [o for o in gc.get_objects() if type(o).__name__ == 'Kernel'][0]\n"
            "k.say({'t': 'end', 'code': 0}); k.say({'t': 'result', 'data': 5}); k.say([1])",
        ]:
            with self.subTest(code[:60]):
                self.assertEqual(self.ask("python", code, timeoutMs=5000).status, 200)
                self.assertEqual(self.value("python", "6 * 7"), "42")
                self.assertEqual(self.run_code("python", "print('ok')")["stdout"], "ok\n")

    def test_huge_outputs_are_bounded(self):
        result = self.run_code("python", "for i in range(300): print('x' * 99999)")
        self.assertEqual(len(result["stdout"]) + result["stdoutLost"], 30_000_000)
        self.assertLessEqual(len(result["stdout"]), 8 << 20)
        parts = self.run_code("python", "'y' * (40 << 20)")["results"]
        self.assertLess(len(json.dumps(parts)), 2 << 20)
        parts = self.run_code("python", "display({'text/html': 'z' * (30 << 20)}, raw=True)")["results"]
        self.assertIn("left out", parts[0]["value"])
        self.assertEqual(self.value("python", "1"), "1")

    def test_kernels_survive_the_server(self):
        self.run_code("python", "x = 7")
        self.run_code("python", "y = x + 1", sessionId="a")
        self.context("POST", "/python-default/fork", {"sessionId": "b"})
        for victim in ("server", "launcher"):
            self.server.kill(victim)
            self.assertEqual(self.value("python", "x"), "7")
            self.assertEqual(self.value("python", "x", sessionId="b"), "7")
            self.assertEqual(set(self.contexts()), {"python-default", "python-a", "python-b"} & set(self.contexts()))

    def test_one_that_was_busy_when_the_server_died_is_free_again(self):
        self.run_code("python", "x = 7")
        source = "open('/tmp/busy', 'w'); import time; time.sleep(600)"
        thread = threading.Thread(target=self.ask_quietly, args=("python", source))
        thread.start()
        wait_until(lambda: self.box.exec("/usr/bin/test", "-e", "/tmp/busy")["exitCode"] == 0, 30, "it runs")
        self.server.kill("server")
        thread.join()
        # The interrupt is for what nobody waits for any more, not for this.
        self.assertEqual(self.value("python", "import time; time.sleep(4)\nx"), "7")

    def ask_quietly(self, *arguments):
        try:
            self.ask(*arguments, timeout=600)
        except (OSError, HTTPException):
            pass

    def test_they_end_with_their_sandbox_and_begin_again(self):
        self.run_code("python", "x = 1")
        self.assertEqual(http("POST", self.box.path("/stop"), {}).status, 200)
        self.assertEqual(http("POST", self.box.path("/resume"), {}).status, 200)
        self.assertEqual(self.run_code("python", "x")["error"]["name"], "NameError")

    def test_many_at_once(self):
        boxes = [self.create() for _ in range(4)]
        jobs = []
        for box in boxes:
            for language, code in [("python", "40+2"), ("node", "40+2"), ("bash", "echo 42")]:
                jobs += [lambda box=box, language=language, code=code: self.ask(language, code, box=box)] * 3
        for reply in in_parallel(jobs):
            self.assertEqual(reply.status, 200, reply)
            self.assertIn("42", json.dumps(reply.json["result"]))


if __name__ == "__main__":
    fixture.main()
