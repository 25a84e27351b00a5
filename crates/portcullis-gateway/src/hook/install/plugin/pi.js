
export default function (pi) {
  // Where sessions are not kept, they have no name.
  const unnamed = `pi-${process.pid}-${Date.now()}`;
  const event = (name, ctx, more) => {
    const session = ctx.sessionManager.getSessionId?.() ?? ctx.sessionManager.getSessionFile() ?? unnamed;
    return { hook_event_name: name, session_id: session, cwd: ctx.cwd, ...more };
  };
  // Only of calls that were permitted is it told what became of them.
  const calls = new Map();
  // What only goes into the record must not stop anything.
  const tell = (told) => ask(told).catch((error) => console.error(error.message));
  const texts = (content) => (content ?? []).filter((part) => part.type === "text").map((part) => part.text);
  pi.on("session_start", async (_, ctx) => {
    await tell(event("session_start", ctx, {}));
  });
  pi.on("session_shutdown", async (_, ctx) => {
    await tell(event("session_shutdown", ctx, {}));
  });
  pi.on("input", async (input, ctx) => {
    // What another extension says is not the user's word.
    if (input.source === "extension") return { action: "continue" };
    let why;
    try {
      why = (await ask(event("input", ctx, { prompt: input.text }))).withheld;
    } catch (error) {
      why = error.message;
    }
    if (why === undefined) return { action: "continue" };
    ctx.ui.notify(String(why), "error");
    return { action: "handled" };
  });
  // An error here keeps the call from being made.
  pi.on("tool_call", async (asked, ctx) => {
    const call = { tool_name: asked.toolName, tool_use_id: asked.toolCallId, tool_input: structuredClone(asked.input ?? {}) };
    const answer = await ask(event("tool_call", ctx, call));
    if (answer.decision !== undefined) {
      return { block: true, reason: String(answer.reason ?? "portcullis: denied") };
    }
    calls.set(asked.toolCallId, call);
    if (answer.arguments !== undefined) {
      for (const name of Object.keys(asked.input)) delete asked.input[name];
      Object.assign(asked.input, answer.arguments);
    }
  });
  pi.on("tool_result", async (result, ctx) => {
    const call = calls.get(result.toolCallId);
    if (call === undefined) return;
    calls.delete(result.toolCallId);
    const said = texts(result.content).join("\n");
    const more = result.isError ? { error: said } : { tool_response: said };
    let shown;
    try {
      shown = (await ask(event(result.isError ? "tool_failure" : "tool_result", ctx, { ...call, ...more }))).shown;
    } catch (error) {
      shown = error.message;
    }
    if (shown !== undefined) return { content: [{ type: "text", text: String(shown) }] };
  });
}
