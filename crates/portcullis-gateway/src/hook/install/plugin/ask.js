// Has Portcullis judge each call of a tool before it is made. Whatever goes wrong, the call is not made.
import { spawn } from "node:child_process";

const COMMAND = "@COMMAND@";
// Longer than the program takes.
const TIMEOUT_MS = 60_000;
// What an answer may say.
const ANSWERED = new Set(["arguments", "decision", "reason", "shown", "withheld"]);

// The program's answer. One that says anything else is not understood, and must not be taken for a permission.
function understood(text) {
  const answer = JSON.parse(text);
  if (answer === null || typeof answer !== "object" || Array.isArray(answer)) {
    throw new Error("it is no object");
  }
  const unheard = Object.keys(answer).find((name) => !ANSWERED.has(name));
  if (unheard !== undefined) throw new Error(`it has \`${unheard}\``);
  return answer;
}

// Starts the program with one event; its answer.
function ask(event) {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", COMMAND], { stdio: ["pipe", "pipe", "pipe"] });
    const out = [];
    const err = [];
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error("portcullis: no answer in time"));
    }, TIMEOUT_MS);
    child.stdout.on("data", (bytes) => out.push(bytes));
    child.stderr.on("data", (bytes) => err.push(bytes));
    // A program that refuses need not read everything.
    child.stdin.on("error", () => {});
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(new Error(`portcullis: cannot be started: ${error.message}`));
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (code !== 0) {
        reject(new Error(Buffer.concat(err).toString().trim() || `portcullis: ended with code ${code}`));
        return;
      }
      try {
        resolve(understood(Buffer.concat(out).toString()));
      } catch (error) {
        reject(new Error(`portcullis: its answer is not understood: ${error.message}`));
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}
