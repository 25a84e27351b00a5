//! Foreign JSON (MCP, OpenAI chat traces) to and from the gate's vocabulary, without I/O.
