"""Functions at the same time."""

import threading


def in_parallel(jobs):
    """Runs functions at the same time; answers their results in order, exceptions included."""
    results = [None] * len(jobs)

    def one(index, job):
        try:
            results[index] = job()
        except Exception as error:  # noqa: BLE001
            results[index] = error

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
