
export const Portcullis = async ({ directory }) => {
  const event = (name, session, more) => ({ hook_event_name: name, session_id: session, cwd: directory, ...more });
  // After a call, what it was made with is told again; OpenCode does not say.
  const calls = new Map();
  // What only goes into the record must not stop anything.
  const tell = (told) => ask(told).catch((error) => console.error(error.message));
  return {
    event: async ({ event: happened }) => {
      const session = happened.properties?.info?.id ?? happened.properties?.sessionID;
      if (session && (happened.type === "session.created" || happened.type === "session.deleted")) {
        await tell(event(happened.type, session, {}));
      }
    },
    "chat.message": async (input, output) => {
      const text = (output.parts ?? []).filter((part) => part.type === "text").map((part) => part.text);
      await tell(event("chat.message", input.sessionID, { prompt: text.join("\n") }));
    },
    "tool.execute.before": async (input, output) => {
      const call = { tool_name: input.tool, tool_use_id: input.callID, tool_input: output.args ?? {} };
      const answer = await ask(event("tool.execute.before", input.sessionID, call));
      if (answer.decision !== undefined) {
        throw new Error(String(answer.reason ?? "portcullis: denied"));
      }
      calls.set(input.callID, call);
      if (answer.arguments !== undefined) {
        for (const name of Object.keys(output.args)) delete output.args[name];
        Object.assign(output.args, answer.arguments);
      }
    },
    "tool.execute.after": async (input, output) => {
      const call = calls.get(input.callID) ?? { tool_name: input.tool, tool_use_id: input.callID, tool_input: {} };
      calls.delete(input.callID);
      const more = { ...call, tool_response: output.output };
      try {
        const answer = await ask(event("tool.execute.after", input.sessionID, more));
        if (answer.shown !== undefined) output.output = answer.shown;
      } catch (error) {
        output.output = error.message;
      }
    },
  };
};
