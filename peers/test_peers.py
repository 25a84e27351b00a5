"""Tests of the client scripts themselves, against the servers alone: what they report must be true before it says
anything about the gate.

    ../.peers/python/bin/python -m unittest -v test_peers        in this folder, after cargo xtask peers
"""

import copy
import json
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import compare

HERE = Path(__file__).parent
SERVERS = HERE.resolve().parent / ".peers/npm/node_modules/@modelcontextprotocol"
RUN_SECONDS_MAX = 180


def server(name, *arguments):
    return ["node", str(SERVERS / name / "dist/index.js"), *map(str, arguments)]


def script(name, *arguments, **options):
    return subprocess.run(
        [sys.executable, str(HERE / name), *arguments], capture_output=True, timeout=RUN_SECONDS_MAX, **options
    )


def surface():
    done = script("surface.py", *server("server-everything", "stdio"))
    return done.returncode, done.stdout


class Surface(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        results = [None, None]

        def run(number):
            results[number] = surface()

        threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cls.codes = [code for code, _ in results]
        cls.reports = [json.loads(text) for _, text in results]

    def differences(self, change):
        second = copy.deepcopy(self.reports[1])
        change(second)
        return compare.compare(self.reports[0], second, compare.listed())

    def call(self, report, name):
        return next(call for call in report["calls"] if call["name"] == name)

    def test_everything_went_as_the_script_expects(self):
        self.assertEqual([report["problems"] for report in self.reports], [[], []])
        self.assertEqual(self.codes, [0, 0])

    def test_the_whole_surface_is_used(self):
        methods = {call["method"] for call in self.reports[0]["calls"]}
        wanted = "ping tools/list tools/call resources/list resources/templates/list resources/read resources/subscribe"
        wanted += " resources/unsubscribe prompts/list prompts/get completion/complete logging/setLevel initialize"
        wanted += " tasks/get tasks/result tasks/list tasks/cancel server/discover"
        self.assertLessEqual(set(wanted.split()), methods)
        asked = {request["method"] for request in self.reports[0]["requests"]}
        self.assertEqual(asked, {"roots/list", "sampling/createMessage", "elicitation/create"})
        told = {notification["method"] for notification in self.reports[0]["notifications"]}
        self.assertEqual(
            told,
            {
                "notifications/message",
                "notifications/progress",
                "notifications/resources/list_changed",
                "notifications/resources/updated",
                "notifications/tasks/status",
                "notifications/tools/list_changed",
            },
        )
        self.assertTrue(self.call(self.reports[0], "cancelled")["cancelled"])

    def test_two_runs_are_equal_but_for_the_list(self):
        self.assertEqual(self.differences(lambda report: None), [])

    def test_any_other_difference_shows(self):
        def value(report):
            self.call(report, "echo")["result"]["content"][0]["text"] += " "

        def number(report):
            self.call(report, "annotated/error")["result"]["content"][0]["annotations"]["priority"] = 1.0

        def missing(report):
            del self.call(report, "structured")["result"]["structuredContent"]["humidity"]

        def added(report):
            self.call(report, "ping")["result"]["_meta"] = {}

        def order(report):
            notifications = report["notifications"]
            notifications[8], notifications[9] = notifications[9], notifications[8]

        def lost(report):
            report["notifications"].pop()

        def malformed(report):
            self.call(report, "task/create")["result"]["task"]["createdAt"] = "yesterday"

        def another_task(report):
            self.call(report, "task/get")["params"]["taskId"] = "0" * 32

        for change in (value, number, missing, added, order, lost, malformed, another_task):
            with self.subTest(change.__name__):
                self.assertNotEqual(self.differences(change), [])

    def test_a_stale_line_of_the_list_shows(self):
        stale = compare.Field({"field": "/calls/*/result/nowhere", "pattern": ".*"})
        found = compare.compare(self.reports[0], self.reports[1], [*compare.listed(), stale])
        self.assertEqual(found, ["/calls/*/result/nowhere: listed as differing, but matches nothing here"])


class Filesystem(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        for name in ("one", "two"):
            (self.folder / name).mkdir()
        self.servers = [server("server-filesystem", self.folder / name) for name in ("one", "two")]

    def run_steps(self, steps, **options):
        done = script("filesystem.py", "--servers", json.dumps(self.servers), input=json.dumps(steps).encode(), **options)
        return done.returncode, json.loads(done.stdout)

    def test_two_servers_of_one_process(self):
        (self.folder / "one/a.txt").write_text("hello")
        read = {"tool": "read_text_file", "arguments": {"path": str(self.folder / "one/a.txt")}}
        code, report = self.run_steps([read, read | {"server": 1, "id": "denied"}, {"list_tools": 1}])
        self.assertEqual(code, 0, report)
        self.assertEqual([about["name"] for about in report["servers"]], ["secure-filesystem-server"] * 2)
        first, denied, listed = report["steps"]
        self.assertEqual((first["isError"], first["text"]), (False, "hello"))
        self.assertEqual(first["structuredContent"], {"content": "hello"})
        self.assertTrue(denied["isError"])
        self.assertIn("outside allowed directories", denied["text"])
        self.assertIn("write_file", [tool["name"] for tool in listed["tools"]])

    def test_a_call_in_the_background_while_a_file_is_awaited(self):
        go, done = self.folder / "go", self.folder / "done.json"
        target = self.folder / "two/b.txt"
        write = {"tool": "write_file", "arguments": {"path": str(target), "content": "x"}, "server": 1, "id": "w"}
        steps = [
            write | {"background": True, "write_result": str(done)},
            {"wait_file": str(go), "timeout_s": 60},
            {"join": "w"},
        ]
        reports = []
        thread = threading.Thread(target=lambda: reports.append(self.run_steps(steps)))
        thread.start()
        end = time.monotonic() + 60
        while not done.exists() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertFalse(json.loads(done.read_text())["isError"])
        go.touch()
        thread.join()
        code, report = reports[0]
        self.assertEqual(code, 0, report)
        self.assertEqual(target.read_text(), "x")

    def test_a_step_that_cannot_be_done_says_so(self):
        code, report = self.run_steps([{"wait_file": str(self.folder / "never"), "timeout_s": 0.1}])
        self.assertEqual(code, 1)
        self.assertIn("did not appear within 0.1 s", report["problem"])
        code, report = self.run_steps([{"tool": "read_text_file", "server": 7}])
        self.assertEqual(code, 1)
        self.assertIn("there is no server 7", report["problem"])


class Tee(unittest.TestCase):
    def test_bytes_pass_unchanged_and_are_logged(self):
        said = b'{"a": 1.0}\n\xff\xfe\n\nlast without newline'
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            done = script("tee.py", "--log", str(log), "--", "cat", input=said)
            self.assertEqual((done.returncode, done.stdout), (0, said))
            entries = [json.loads(line) for line in log.read_text().splitlines()]
        for sender in ("client", "server"):
            lines = [entry.get("line", entry.get("base64")) for entry in entries if entry["from"] == sender]
            self.assertEqual(lines, ['{"a": 1.0}', "//4=", "", "last without newline"])

    def test_the_exit_status_is_the_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            log = str(Path(folder) / "log")
            self.assertEqual(script("tee.py", "--log", log, "--", "sh", "-c", "exit 7", input=b"").returncode, 7)
            self.assertEqual(script("tee.py", "--log", log, "--", "no-such-command", input=b"").returncode, 3)


if __name__ == "__main__":
    unittest.main()
