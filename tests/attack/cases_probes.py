"""The probes A to D in sandboxes, where they must pass, in both profiles."""

import unittest

import controls
import product


@unittest.skipUnless(product.SOCKET, "ATOLL_SOCKET is not set")
class ProbesInside(unittest.TestCase):
    def check(self, profile):
        ids = controls.bundle_ids()
        with product.Sandbox(profile) as sandbox:
            results = sandbox.probes("all")
        for probe in ids:
            with self.subTest(profile=profile, probe=probe):
                self.assertEqual(results.get(probe, f"{probe} did not run"), f"PASS {probe}")

    def test_strict_profile(self):
        self.check("strict")

    def test_dev_profile(self):
        self.check("dev")
