"""Agents and batches: tpsim mcp is called by a scripted client, tpsim batch is killed and started again.

Run by ctest with TPSIM_PROGRAM set.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["TPSIM_PROGRAM"]
SMALL = {"model": "bloom-560m", "tp": 2, "pp": 2, "dp": 4, "micro_batch": 2, "global_batch": 64}
MOST_BRIEF = 1000


def line_of(document):
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def printed(*words):
    """The JSON that a command prints."""
    return json.loads(subprocess.run([PROGRAM, *words, "--quiet"], capture_output=True, check=False).stdout)


def request(call, **options):
    return {"format": "tpsim-request/1", "call": call, "options": options}


def called(one):
    """The answer of tpsim call to a request."""
    text = subprocess.run([PROGRAM, "call"], input=json.dumps(one), capture_output=True, text=True, check=True).stdout
    return json.loads(text)


def without_times(value):
    """A report without the seconds of its search."""
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key != "seconds"}
    return [without_times(one) for one in value] if isinstance(value, list) else value


class Client:
    """A client of the Model Context Protocol."""

    def __init__(self):
        self.server = subprocess.Popen([PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last, self.progress = 0, []

    def __enter__(self):
        self.greeting = self.ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}})
        self.send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    def send(self, message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def start(self, method, parameters):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": parameters})
        return self.last

    def receive(self):
        return json.loads(self.server.stdout.readline())

    def ask(self, method, parameters=None):
        wanted = self.start(method, parameters or {})
        while True:
            message = self.receive()
            if message.get("method") == "notifications/progress":
                self.progress.append(message["params"]["progress"])
            elif message.get("id") == wanted:
                return message

    def tool(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments, "_meta": {"progressToken": 1}})["result"]


class McpTest(unittest.TestCase):
    def test_a_client_lists_the_tools(self):
        with Client() as client:
            self.assertEqual(client.greeting["result"]["protocolVersion"], "2025-03-26")
            tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
        self.assertEqual(set(tools), {"plan", "simulate", "explain", "why_not", "compare", "campaign", "import_file",
                                      "check_log", "models", "clusters"})
        for tool in tools.values():
            self.assertEqual(tool["inputSchema"]["type"], "object")
            self.assertLess(len(line_of(tool)), 8000, tool["name"])
        self.assertIn("gpus", tools["plan"]["inputSchema"]["properties"])
        self.assertEqual(tools["why_not"]["inputSchema"]["required"], ["why_not"])

    def test_answers_equal_those_of_the_command_line(self):
        words = ["--model", "bloom-560m", "--cluster", "dgx-a100", "--gpus", "16"]
        arguments = {"model": "bloom-560m", "cluster": "dgx-a100", "gpus": 16}
        with Client() as client, tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "plan.json")
            for name, command in (("plan", ["plan"]), ("why_not", ["explain", "--why-not", "tp=8"])):
                more = {"why_not": "tp=8"} if name == "why_not" else {"save": saved}
                short = client.tool(name, **arguments, **more)
                full = client.tool(name, **arguments, **more, full=True)
                self.assertFalse(short["isError"])
                self.assertEqual(json.loads(short["content"][0]["text"]), short["structuredContent"])
                self.assertEqual(short["structuredContent"], printed(*command, *words, "--brief"))
                self.assertLessEqual(len(line_of(short["structuredContent"]).encode()), MOST_BRIEF)
                self.assertEqual(without_times(full["structuredContent"]),
                                 without_times(printed(*command, *words, "--json")))
            layout = short["structuredContent"]["best"]["layout"]
            again = client.tool("simulate", model="bloom-560m", cluster="dgx-a100", **layout)["structuredContent"]
            self.assertEqual(again["best"]["step_s"], short["structuredContent"]["best"]["step_s"])
            compared = client.tool("compare", path=[saved, saved], full=True)["structuredContent"]
            self.assertEqual(compared["version"], "tpsim-compare-report/1")
            self.assertEqual(client.tool("explain", plan=saved)["structuredContent"]["best"]["layout"], layout)
        self.assertTrue(all(0 <= share <= 1 for share in client.progress))

    def test_a_search_is_cancelled_and_the_next_call_answered(self):
        with Client() as client:
            long = client.start("tools/call", {"name": "plan", "arguments": {
                "model": "kimi-k2", "cluster": "dgx-h100", "gpus": 1024, "threads": 1}})
            time.sleep(0.3)
            client.send({"method": "notifications/cancelled", "params": {"requestId": long}})
            names = client.tool("clusters")
            self.assertIn("dgx-h100", json.loads(names["content"][0]["text"]))

    def test_bad_requests_get_typed_errors(self):
        wrong = [("plan", {"model": "blom-560m", "gpus": 8}), ("plan", {"model": "bloom-560m"}),
                 ("plan", {"modle": "bloom-560m", "gpus": 8}), ("plan", {"model": "bloom-560m", "gpus": "many"}),
                 ("why_not", {"model": "bloom-560m", "gpus": 8}), ("compare", {}), ("compare", {"path": "/none.json"}),
                 ("check_log", {"path": "/none.log"}), ("import_file", {"path": ["/none"]}), ("import_file", {}),
                 ("campaign", {"model": "bloom-560m", "gpus": 8, "tokens": "lots"}),
                 ("simulate", {**SMALL, "tp": 3}), ("simulate", {**SMALL, "recompute": "half"}),
                 ("explain", {"plan": "/none.json"}), ("plan", {"model": 5, "gpus": 8}), ("models", {"gpus": 8}),
                 ("plan", {"model": "bloom-560m", "gpus": 8, "full": "yes"}),
                 ("plan", {"model": "bloom-560m", "gpus": 8, "save": 3}), ("plan", {"model": "-", "gpus": 8}),
                 ("simulate", {**SMALL, "save": "/no/such/folder/plan.json"})]
        drawn = random.Random(1)
        known = printed_keywords()
        wrong += [("plan", {"model": "bloom-560m", "gpus": 8, drawn.choice(known): drawn.choice(["\u0000", [[]], {}])})
                  for _ in range(30)]
        with Client() as client:
            for name, arguments in wrong:
                with self.subTest(name=name, arguments=arguments):
                    result = client.tool(name, **arguments)
                    self.assertTrue(result["isError"])
                    error = json.loads(result["content"][0]["text"])
                    self.assertIn(error["kind"], ("bad_input", "does_not_fit", "missing"))
                    self.assertTrue(error["message"])
            self.assertEqual(client.ask("tools/call", {"name": "plna"})["error"]["code"], -32602)
            self.assertIn("choose from plan", client.ask("tools/call", {"name": "plna"})["error"]["message"])
            self.assertEqual(client.ask("tools/call", {})["error"]["code"], -32602)
            self.assertEqual(client.ask("prompts/list")["error"]["code"], -32601)
            client.server.stdin.write("garbage\n")
            client.server.stdin.flush()
            self.assertEqual(client.receive()["error"]["code"], -32700)
            self.assertEqual(client.ask("ping")["result"], {})


def printed_keywords():
    options = called({"format": "tpsim-request/1", "call": "options"})["answer"]["plan"]
    return [option["name"] for option in options if option["name"] not in ("model", "gpus")]


class SchemaTest(unittest.TestCase):
    def test_requests_have_schemas_whose_words_are_accepted(self):
        for call in ("plan", "simulate", "explain", "campaign", "import_plan", "compare"):
            schema = json.loads(subprocess.run([PROGRAM, "show", "schema", call + "-request"], capture_output=True,
                                               check=True).stdout)
            options = schema["properties"]["options"]["properties"]
            self.assertEqual(set(options), {option["name"] for option in called(
                {"format": "tpsim-request/1", "call": "options"})["answer"][call]})
            for name, option in options.items():
                self.assertTrue(option["description"], name)
        words = [(name, word) for name, option in json.loads(subprocess.run(
            [PROGRAM, "show", "schema", "simulate-request"], capture_output=True, check=True).stdout)[
                "properties"]["options"]["properties"].items() for word in option.get("enum", [])]
        self.assertGreater(len(words), 100)
        requests = "\n".join(json.dumps(request("simulate", **SMALL, **{name: word}, ignore_stack_limits=True))
                             for name, word in words)
        answers = subprocess.run([PROGRAM, "call"], input=requests, capture_output=True, text=True, check=True).stdout
        for (name, word), line in zip(words, answers.splitlines()):
            error = json.loads(line).get("error")
            self.assertFalse(error and "choose from" in error["hint"], f"{name}={word}: {error}")


class BatchTest(unittest.TestCase):
    def setUp(self):
        drawn = random.Random(7)
        self.requests = [dict(request("simulate", **SMALL, recompute=drawn.choice(["none", "full"]),
                                      seq=64 * drawn.randint(1, 30)),
                              id=number) for number in range(200)]
        self.requests[17] = {"format": "tpsim-request/1", "call": "nothing"}
        self.requests[40] = request("simulate", model="none")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.input, self.output = (os.path.join(folder.name, name) for name in ("in.jsonl", "out.jsonl"))
        with open(self.input, "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(one) + "\n" for one in self.requests) + "not JSON\n")

    def run_batch(self, *words):
        return subprocess.run([PROGRAM, "batch", self.input, "-o", self.output, *words], capture_output=True, text=True,
                              check=False)

    def answers(self):
        with open(self.output, encoding="utf-8") as file:
            return {answer["line"]: answer for answer in map(json.loads, file)}

    def test_a_killed_batch_goes_on_and_loses_and_doubles_nothing(self):
        for number in range(20):
            process = subprocess.Popen([PROGRAM, "batch", self.input, "-o", self.output, "--threads", "2"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.02 * (number % 4))
            process.send_signal(signal.SIGKILL)
            process.wait()
        with open(self.output, "a", encoding="utf-8") as file:
            file.write('{"line":5,"requ')  # as of a write that was cut off
        done = self.run_batch("--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["requests"], 201)
        self.assertEqual(report["answered"] + report["errors"] + report["answered_before"], 201)
        with open(self.output, encoding="utf-8") as file:
            self.assertEqual(sorted(json.loads(line)["line"] for line in file), list(range(1, 202)))
        answers = self.answers()
        for number in range(0, 200, 10):
            alone = called({key: value for key, value in self.requests[number].items() if key != "id"})
            self.assertEqual(answers[number + 1].get("answer"), alone.get("answer"))
            self.assertEqual(answers[number + 1].get("files"), alone.get("files"))
            self.assertEqual(answers[number + 1].get("error"), alone.get("error"))
        self.assertEqual(answers[3]["id"], 2)
        self.assertEqual({line for line, answer in answers.items() if "error" in answer}, {18, 41, 201})
        self.assertEqual(json.loads(self.run_batch("--json").stdout)["answered_before"], 201)

    def test_short_answers_and_faults(self):
        self.assertEqual(self.run_batch("--brief").returncode, 0)
        self.assertTrue(all("answer" not in one for one in self.answers().values() if "error" not in one))
        with open(self.input, "w", encoding="utf-8") as file:
            file.write(json.dumps(request("clusters")) + "\n")
        changed = self.run_batch()
        self.assertEqual(changed.returncode, 2)
        self.assertIn("differs from the one that was answered before", changed.stderr)
        with open(self.output, "w", encoding="utf-8") as file:
            file.write("other text\n")
        self.assertIn("is not an answer of tpsim batch", self.run_batch().stderr)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.input)
        self.assertEqual(self.run_batch().returncode, 2)
        self.assertEqual(subprocess.run([PROGRAM, "batch"], capture_output=True, check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main()
