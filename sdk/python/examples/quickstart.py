"""A sandbox, a command, a file: python examples/quickstart.py"""

from atoll_sandbox import Client

with Client() as atoll:
    box = atoll.create(max_lifetime=300)
    try:
        atoll.write(box.id, "hello.py", "print('hello from', __import__('socket').gethostname())")
        done = atoll.exec(box.id, "python3 hello.py", timeout=10)
        print(done.stdout, end="")
    finally:
        atoll.delete(box.id)
