"""Prepare once, branch many times: python examples/branches.py"""

from atoll_sandbox import Client

with Client() as atoll:
    base = atoll.create(max_lifetime=300)
    atoll.exec(base.id, "seq 1000 > numbers")
    branches = atoll.fork(base.id, count=3)
    for number, branch in enumerate(branches, 1):
        print(branch.id, atoll.exec(branch.id, f"head -n {number} numbers | tail -n 1").stdout, end="")
    for sandbox in [base, *branches]:
        atoll.delete(sandbox.id)
