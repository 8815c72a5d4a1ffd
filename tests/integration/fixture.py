"""What the integration tests share, under one name. Each concept has a file of its own."""

# ruff: noqa: F401
from program import BIN, TEMPLATE, TESTS, cli, raw_cli, start_cli  # first: makes `product` known

from box import Box, events
from case import AtollCase
from host import alive, read_text, rss_bytes
from leaks import LeakCounter
from parallel import in_parallel
from product import MEMORY_FACTOR, TIME_FACTOR, http, unique, wait_until
from runner import SKIPPED, expected_skips, main
from server import AtollServer
