"""Sixteen sandboxes at the same time, each with output that streams: python examples/many_at_once.py"""

import asyncio

from atoll_sandbox import AsyncClient


async def work(atoll: AsyncClient, number: int) -> str:
    box = await atoll.create(max_lifetime=300)
    try:
        process = await atoll.spawn(box.id, f"for i in 1 2 3; do echo {number}.$i; done")
        pieces = [event.data async for event in atoll.logs(box.id, process.pid) if event.kind == "stdout"]
        return "".join(pieces)
    finally:
        await atoll.delete(box.id)


async def main() -> None:
    async with AsyncClient() as atoll:
        for output in await asyncio.gather(*(work(atoll, number) for number in range(16))):
            print(output.replace("\n", " "))


asyncio.run(main())
