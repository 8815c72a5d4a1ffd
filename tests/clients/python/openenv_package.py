"""OpenEnv's own rollout loop, from PyPI, over sessions that live in Atoll's sandboxes: a scripted model calls a shell
tool, the reward comes from inside the sandbox."""

from openenv.core.harness.rollout import (
    HarnessRunLimits,
    MCPHarnessAdapter,
    ModelStepResult,
    ResourceSession,
    ResourceSessionFactory,
    ToolResult,
    VerifyResult,
    build_harness_rollout_func,
)
from openenv.core.llm_client import LLMResponse, ToolCall

from atoll_sandbox import AtollSandboxBackend


class ShellSession(ResourceSession):
    def __init__(self, box, task):
        self.box, self.task = box, task

    def initial_messages(self):
        return [{"role": "user", "content": self.task}]

    def list_tools(self):
        return []

    def call_tool(self, name, arguments):
        done = self.box.exec(arguments["command"], timeout=20)
        return ToolResult(data={"exit_code": done.exit_code, "stdout": done.stdout})

    def verify(self, transcript, final_state=None):
        passed = self.box.exec("test $(cat answer.txt) = 42", timeout=20).exit_code == 0
        return VerifyResult(env_reward=float(passed), done=True)

    def close(self):
        self.box.kill()


class ShellSessions(ResourceSessionFactory):
    def __init__(self, backend):
        self.backend = backend

    def create(self, task, seed=None, episode_id=None):
        return ShellSession(self.backend.create(timeout_s=120, metadata={"task": task}), task)


def scripted(trainer, session):
    """A model that writes the answer only when the task asks for it."""
    turns = iter(
        [
            [ToolCall(id="1", name="shell", args={"command": f"echo {session.task} > answer.txt; cat answer.txt"})],
            [],
        ]
    )

    def step(messages, tools, sampling):
        calls = next(turns)
        return ModelStepResult(
            response=LLMResponse(content="" if calls else "done", tool_calls=calls),
            prompt_ids=[len(messages)],
            completion_ids=[1],
            logprobs=[0.0],
        )

    return step


def main():
    rollouts = build_harness_rollout_func(
        session_factory=ShellSessions(AtollSandboxBackend()),
        harness_adapter=MCPHarnessAdapter(),
        model_step_builder=scripted,
        limits=HarnessRunLimits(max_turns=4),
    )
    result = rollouts(["42", "41"], trainer=None)
    assert result["env_reward"] == [1.0, 0.0], result
    assert result["prompt_ids"] == [[1, 3], [1, 3]], result
    print("ok")


main()
