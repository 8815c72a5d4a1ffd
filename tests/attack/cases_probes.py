"""The probes A to D: in the control jails, where they must fail, and in sandboxes, where they must
pass in both profiles."""

import unittest

import controls
import product


class ControlJails(unittest.TestCase):
    """Without the product: what is listed in control_expectations.txt fails."""

    def check(self, jail, ids=("all",)):
        results = controls.run_in_jail(jail, ids)
        for probe in controls.expected_failures(jail):
            with self.subTest(jail=jail, probe=probe):
                self.assertTrue(results.get(probe, "missing").startswith("FAIL"), "has lost its teeth")

    def test_bubblewrap_without_a_filter(self):
        self.check("bwrap")

    def test_root_in_namespaces(self):
        self.check("root-in-namespaces")

    def test_planted_weaknesses(self):
        self.check("planted", controls.expected_failures("planted"))


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
