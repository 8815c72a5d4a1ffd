"""E2B's code interpreter package for Python, blocking and asynchronous, as its users write it."""

import asyncio
import os

from e2b_code_interpreter import AsyncSandbox, Sandbox


def blocking():
    print("blocking")
    with Sandbox.create() as box:
        box.run_code("x = 41")
        done = box.run_code("print('out')\nx + 1")
        assert done.text == "42", done
        assert "".join(done.logs.stdout) == "out\n", done
        failed = box.run_code("nothing")
        assert failed.error.name == "NameError", failed
        assert box.run_code("import os; os.environ['MINE']", envs={"MINE": "yes"}).text == "'yes'"
        assert box.run_code("1 + 1", language="javascript").text == "2"
        context = box.create_code_context(cwd="/tmp")
        box.run_code("x = 'mine'", context=context)
        assert box.run_code("x", context=context).text == "'mine'"
        assert box.run_code("x").text == "41"
        assert context.id in [one.id for one in box.list_code_contexts()]
        box.restart_code_context(context)
        assert box.run_code("x", context=context).error.name == "NameError"
        box.remove_code_context(context)
        assert context.id not in [one.id for one in box.list_code_contexts()]
        try:
            # Older ones take the longer of the two.
            box.run_code("import time; time.sleep(60)", timeout=1, request_timeout=1)
        except Exception as error:
            assert "imeout" in type(error).__name__, error
        else:
            raise AssertionError("it ran for too long")
        assert box.run_code("x").text == "41"
        box.kill()


async def asynchronous():
    print("asynchronous")
    box = await AsyncSandbox.create()
    said = []
    done = await box.run_code("for i in range(3): print(i)", on_stdout=lambda message: said.append(message.line))
    assert "".join(done.logs.stdout) == "0\n1\n2\n", done
    assert "".join(said) == "0\n1\n2\n", said
    context = await box.create_code_context(language="javascript")
    assert (await box.run_code("const a = await Promise.resolve(5); a", context=context)).text == "5"
    await box.remove_code_context(context)
    await box.kill()


blocking()
asyncio.run(asynchronous())
print("ok", flush=True)
os._exit(0)  # threads that the package leaves behind can abort the interpreter's own end
