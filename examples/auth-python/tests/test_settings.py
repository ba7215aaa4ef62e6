"""Tests that problems with settings are reported, with their paths."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from plugin import settings  # noqa: E402
from settings import Settings  # noqa: E402

GOOD = '"issuer": "https://id.example.com"'


class SettingsTest(unittest.TestCase):
    def test_every_problem_is_reported_with_its_path(self):
        cases = {
            "{" + GOOD + "}": [],
            "{" + GOOD + ', "audiences": ["a"], "organizationId": "o"}': [],
            "": [("issuer", "must be set", "")],
            "{": [("", "cannot be parsed at character 1", ""), ("issuer", "must be set", "")],
            "[]": [("", "must be an object, not a list", ""), ("issuer", "must be set", "")],
            "{" + GOOD + ', "isuer": "x"}': [("isuer", "is not a setting", "issuer")],
            "{" + GOOD + ', "colour": "x"}': [("colour", "is not a setting", "")],
            "{" + GOOD + ", " + GOOD + "}": [("issuer", "is given twice", "")],
            '{"issuer": null}': [("issuer", "must be a string, not null", "")],
            '{"issuer": 5}': [("issuer", "must be a string, not a number", "")],
            '{"issuer": true}': [("issuer", "must be a string, not true or false", "")],
            '{"issuer": {}}': [("issuer", "must be a string, not an object", "")],
            "{" + GOOD + ', "audiences": "a"}': [("audiences", "must be a list, not a string", "")],
            "{" + GOOD + ', "audiences": {"a": 1}}': [("audiences", "must be a list, not an object", "")],
            "{" + GOOD + ', "audiences": ["a", 1]}': [("audiences[1]", "must be a string, not a number", "")],
            '{"issuer": "http://id.example.com"}': [("issuer", "must be an https URL", "")],
            '{"issuer": "id.example.com"}': [("issuer", "must be an absolute URL", "")],
            '{"issuer": "https://a:b@id.example.com"}': [("issuer", "must not contain a user", "")],
            '{"issuer": "https://id.example.com?"}': [("issuer", "must not have a query", "")],
            '{"issuer": "https://[::"}': [("issuer", "must be an absolute URL", "")],
            "{" + GOOD + ', "redirectUri": "https://r.example"}': [("clientId", "must be set when redirectUri is", "")],
            "{" + GOOD + ', "clientSecret": "canary"}': [("clientId", "must be set when clientSecret is", "")],
            "{" + GOOD + ', "organizationId": "o", "organizationClaim": ""}': [("organizationClaim", "must name", "")],
        }
        for text, want in cases.items():
            with self.subTest(text):
                _, problems = settings.parse(text, Settings)
                self.assertEqual([(p.path, p.nearest) for p in problems], [(path, near) for path, _, near in want])
                for problem, (_, message, _) in zip(problems, want, strict=True):
                    self.assertIn(message, problem.message)
                    self.assertNotIn("canary", problem.message)

    def test_loopback_may_do_without_tls(self):
        for issuer in ("http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"):
            _, problems = settings.parse('{"issuer": "' + issuer + '"}', Settings)
            self.assertEqual(problems, [])

    def test_a_secret_is_not_printed(self):
        taken, _ = settings.parse("{" + GOOD + ', "clientId": "c", "clientSecret": "canary"}', Settings)
        self.assertNotIn("canary", repr(taken))


if __name__ == "__main__":
    unittest.main()
