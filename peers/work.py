"""A scripted agent with a list of work, through the official client: the steps of `filesystem.py`, and

    {"claim": ITEM, "statement": TEXT, "cites": TOOL, "server": 0}    claim that an item is done, citing the latest call of
                                                                     TOOL that succeeded, as `work_read` lists it

Called like `filesystem.py`; reports like it, too.
"""

import sys

import filesystem


class Agent(filesystem.Run):
    async def step(self, number, step):
        if "claim" not in step:
            return await super().step(number, step)
        server = step.get("server", 0)
        read = await self.client(server).call_tool("work_read", {})
        calls = read.structured_content["calls"]
        cited = next((call["action"] for call in calls if call["tool"] == step["cites"] and call["succeeded"]), None)
        if cited is None:
            raise filesystem.StepError(f"no call of `{step['cites']}` succeeded")
        arguments = {"item": step["claim"], "evidence": [cited], "statement": step["statement"]}
        await super().step(number, {"tool": "work_claim", "arguments": arguments, "server": server})


if __name__ == "__main__":
    filesystem.Run = Agent
    sys.exit(filesystem.main())
