import { defineAgent } from "eve";
import { mockModel } from "eve/evals";

interface Call {
  name: string;
  input: unknown;
}

const stepsOf = (message: string): Call[][] => {
  const script = /^SCRIPT (.*)$/s.exec(message);
  return script ? (JSON.parse(script[1]!) as Call[][]) : [];
};

// A user's message is the script of its turn: steps, each a list of calls made at the same time. The answer is what they gave.
export default defineAgent({
  modelContextWindowTokens: 200_000,
  model: mockModel((request) => {
    const earlier = request.userMessages.slice(0, -1).flatMap((message) => stepsOf(message).flat()).length;
    const results = request.toolResults.slice(earlier);
    let answered = 0;
    for (const step of stepsOf(request.lastUserMessage ?? "")) {
      if (answered >= results.length) return { toolCalls: step };
      answered += step.length;
    }
    return "RESULTS " + JSON.stringify(results.map(({ name, isError, output }) => ({ name, isError, output })));
  }),
});
