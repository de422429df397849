// Runs a handler of Node.js: speaks the Runtime API for it.
import http from "node:http";
import path from "node:path";
import fs from "node:fs";
import stream from "node:stream";
import util from "node:util";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const base = "/2018-06-01/runtime/";
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function call(method, where, body, headers = {}) {
  return new Promise((resolve, reject) => {
    if (body !== undefined) headers["Content-Length"] = Buffer.byteLength(body);
    const req = http.request({ host, port, method, path: base + where, agent, headers }, (res) => {
      const chunks = [];
      res.on("data", (c) => chunks.push(c));
      res.on("end", () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks).toString() }));
      res.on("error", reject);
    });
    req.on("error", reject);
    req.end(body);
  });
}

let requestId; // of the invocation; what is logged before the first one has none

const jsonLogs = process.env.AWS_LAMBDA_LOG_FORMAT === "JSON";
const levels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
const leastLevel = jsonLogs ? levels.indexOf(process.env.AWS_LAMBDA_LOG_LEVEL) : 0;

// What is printed has the time, the request and the level before it, or is a member
// of an object that has them.
for (const [name, level] of Object.entries({ log: "INFO", info: "INFO", debug: "DEBUG", warn: "WARN", error: "ERROR", trace: "TRACE", fatal: "FATAL" })) {
  console[name] = (...args) => {
    if (levels.indexOf(level) < leastLevel) return;
    const timestamp = new Date().toISOString();
    if (jsonLogs) {
      fs.writeSync(1, event(jsonLine({ timestamp, level, requestId }, args)));
    } else {
      fs.writeSync(1, event(`${timestamp}\t${requestId}\t${level}\t${util.format(...args)}`));
    }
  };
}

// event makes text one event of the log, with its newlines and apart from a line that has not ended.
function event(text) {
  return (text.includes("\n") || !text.includes("\x1f") ? "\x1e\x1f" + text.replace(/\n/g, "\x1f") : text) + "\n";
}

// jsonLine is what console was given: one thing as itself, several as text, with the
// error among them.
function jsonLine(line, args) {
  const plain = (_, value) => (value instanceof Error ? { ...traced(value), ...value } : typeof value === "bigint" ? String(value) : value);
  if (args.length === 1) {
    try {
      return JSON.stringify({ ...line, message: args[0] }, plain);
    } catch {
      // circular
    }
  }
  const err = args.length > 1 && args.find((a) => a instanceof Error);
  return JSON.stringify({ ...line, message: util.format(...args), ...(err ? traced(err) : {}) });
}

function traced(err) {
  return { errorType: err.constructor?.name ?? "UnknownError", errorMessage: err.message, stackTrace: (err.stack ?? "").split("\n") };
}

// mostReported bounds the characters of a failure's message, its stack and what the log has of it, so that
// its answer is never too large, whatever has to be escaped, and the log has a few events of it at most.
const mostReported = 500_000;

const mostNamed = 1024;

// cut bounds a text, and fails for what is none.
function cut(text, most = mostReported) {
  if (typeof text !== "string") throw new TypeError("not a text");
  return text.slice(0, most);
}

// describe is what is answered of a failure, which may be anything.
function describe(err) {
  try {
    if (isError(err)) {
      return { errorType: cut(err.name, mostNamed), errorMessage: cut(err.message), trace: cut(err.stack ?? "").split("\n") };
    }
    return { errorType: typeof err, errorMessage: cut(String(err)), trace: [] };
  } catch {
    return {
      errorType: "handled",
      errorMessage: "callback called with Error argument, but there was a problem while retrieving one or more of its message, name, and stack",
      trace: [],
    };
  }
}

// bounded is a replacer of JSON that has replace's values until they have as much text as is reported.
function bounded(replace) {
  let left = mostReported;
  return (key, value) => {
    if (left <= 0) return undefined;
    left -= key.length + 4; // with quotes, colon and comma
    value = replace(value);
    if (typeof value === "string") {
      value = value.slice(0, Math.max(left, 0));
      left -= value.length;
    } else if (Array.isArray(value)) {
      value = value.slice(0, Math.max(left / 5, 0)); // as each takes as much
    }
    return value;
  };
}

// report prints a failure, as text with all that the error has of its own.
function report(what, err) {
  const { errorType, errorMessage, trace } = describe(err);
  if (jsonLogs) {
    console.error({ errorType, errorMessage, stackTrace: trace });
    return;
  }
  let text;
  try {
    text = JSON.stringify(isError(err) ? err : new Error(errorMessage), bounded((value) => (isError(value) ? whole(value) : value)));
  } catch {
    text = JSON.stringify({ errorType, errorMessage, trace }); // it is circular, say
  }
  console.error(what, "\t" + text);
}

function whole(err) {
  const stack = typeof err.stack === "string" ? { stack: err.stack.split("\n") } : {};
  return { errorType: err.name, errorMessage: err.message, code: err.code, ...err, ...stack };
}

function isError(value) {
  return value instanceof Error || util.types.isNativeError(value);
}

async function fail(where, err, what) {
  const body = describe(err);
  try {
    report(what, err);
  } catch {
    // the pipe is full, say: the failure is told below all the same
  }
  await call("POST", where, JSON.stringify(body), {
    "Content-Type": "application/json", "Lambda-Runtime-Function-Error-Type": inHeader(body.errorType),
  });
}

// inHeader is an error's name, which may be anything, as a header can have it.
function inHeader(name) {
  return cut(String(name), mostNamed).replace(/[^\x20-\x7e]/g, "?");
}

class RuntimeError extends Error {
  constructor(name, message) {
    super(message);
    Object.defineProperty(this, "name", { value: name }); // no property of its own in the log
  }
}

async function load() {
  const handler = process.env._HANDLER;
  const at = path.basename(handler).indexOf(".");
  if (at < 0 || handler.includes("..")) throw new RuntimeError("Runtime.MalformedHandlerName", "Bad handler");
  const file = path.join(path.dirname(handler), path.basename(handler).slice(0, at));
  const names = path.basename(handler).slice(at + 1).split(".");
  const full = path.resolve(process.env.LAMBDA_TASK_ROOT, file);
  let module;
  try {
    const require = createRequire(path.join(process.env.LAMBDA_TASK_ROOT, "package.json"));
    const exists = (extension) => fs.existsSync(full + extension);
    if (exists(".js") && !isModule(full)) {
      module = require(full + ".js");
    } else if (exists(".js") || exists(".mjs")) {
      module = await import(pathToFileURL(full + (exists(".js") ? ".js" : ".mjs")));
    } else {
      const found = [full + ".cjs", full].find((f) => fs.existsSync(f));
      if (!found) throw new RuntimeError("Runtime.ImportModuleError", `Error: Cannot find module '${file}'`);
      module = require(found);
    }
  } catch (err) {
    if (err instanceof SyntaxError) throw new RuntimeError("Runtime.UserCodeSyntaxError", String(err));
    if (err?.code === "MODULE_NOT_FOUND") throw new RuntimeError("Runtime.ImportModuleError", String(err));
    throw err;
  }
  let f = module;
  for (const name of names) f = f?.[name] ?? f?.default?.[name];
  if (f === undefined) throw new RuntimeError("Runtime.HandlerNotFound", `${handler} is undefined or not exported`);
  if (typeof f !== "function") throw new RuntimeError("Runtime.HandlerNotFound", `${handler} is not a function`);
  return f;
}

// isModule reports whether the package.json that rules a file says that it is
// an ECMAScript module.
function isModule(file) {
  for (let dir = path.dirname(file); ; dir = path.dirname(dir)) {
    const at = path.join(dir, "package.json");
    if (fs.existsSync(at)) return JSON.parse(fs.readFileSync(at)).type === "module";
    if (dir === process.env.LAMBDA_TASK_ROOT || dir === path.dirname(dir)) return false;
  }
}

// run runs a handler of either style. The first answer counts, however it is given. What a
// callback is given counts once nothing is left to do, unless the handler does not want to wait.
function run(handler, event, context) {
  return new Promise((resolve, reject) => {
    let finished = false;
    let atEnd = () => {
      if (handler.constructor?.name === "AsyncFunction") reject(new RuntimeError("Runtime.NodeJsExit", neverSettled));
      else resolve(null);
    };
    const idle = () => atEnd();
    const done = (err, result) => {
      process.removeListener("beforeExit", idle);
      if (err !== undefined && err !== null) reject(err);
      else resolve(result);
    };
    const first = (f) => (...args) => {
      if (finished) return;
      finished = true;
      f(...args);
    };
    const succeed = first((result) => done(null, result));
    const fail = first((err) => done(err ?? "handled"));
    const callback = first((err, result) => {
      if ((err !== undefined && err !== null) || !context.callbackWaitsForEmptyEventLoop) done(err, result);
      else atEnd = () => resolve(result);
    });
    Object.assign(context, { done: first(done), succeed, fail });
    process.once("beforeExit", idle);
    try {
      const result = handler(event, context, callback);
      if (typeof result?.then === "function") result.then(succeed, fail);
    } catch (err) {
      callback(err);
    }
  });
}

const neverSettled = "The Lambda runtime client detected an unexpected Node.js exit code. This is most commonly caused by a Promise " +
  "that was never settled. For more information, see https://nodejs.org/docs/latest/api/process.html#exit-codes";

// Handlers that write their answer to a stream have this mark, whose value AWS's packages know.
const streaming = Symbol.for("aws.lambda.runtime.handler.streaming");

globalThis.awslambda = {
  streamifyResponse(handler) {
    handler[streaming] = "response";
    return handler;
  },
  HttpResponseStream: {
    // from puts the status and headers of an answer by HTTP before its body.
    from(response, prelude) {
      const head = JSON.stringify(prelude);
      response._onBeforeFirstWrite = (write) => {
        write(head);
        write(new Uint8Array(8));
      };
      return response;
    },
  },
};

// Gathered is a stream of an answer, which the caller is given once it has ended.
class Gathered extends stream.Writable {
  chunks = [];

  constructor() {
    super({
      write: (chunk, _, done) => {
        this.chunks.push(Buffer.from(chunk));
        done();
      },
    });
  }

  setContentType() {}

  write(chunk, ...rest) {
    const first = this._onBeforeFirstWrite;
    this._onBeforeFirstWrite = undefined;
    first?.((head) => super.write(head));
    return super.write(typeof chunk === "string" || chunk instanceof Uint8Array ? chunk : JSON.stringify(chunk), ...rest);
  }
}

// runStreaming runs a handler that writes its answer to a stream.
async function runStreaming(handler, event, context) {
  const answer = new Gathered();
  let idle;
  const nothingLeft = new Promise((resolve, reject) => {
    idle = () => (answer.writableFinished ? resolve() : reject("Response stream is not finished."));
  });
  process.once("beforeExit", idle);
  try {
    const result = handler(event, answer, context);
    if (typeof result?.then !== "function") throw "Streaming does not support non-async handlers.";
    await Promise.race([nothingLeft, Promise.all([result, stream.promises.finished(answer)])]);
  } finally {
    process.removeListener("beforeExit", idle);
  }
  return Buffer.concat(answer.chunks);
}

// under is where what nothing catches is told; null: nobody waits for it.
let under = "init/error";

// end tells a failure that nothing has caught, which ends the process.
async function end(status, what, err) {
  const where = under;
  under = null;
  try {
    if (where) await fail(where, err, what);
    else report(what, err);
  } finally {
    process.exit(status);
  }
}

process.on("uncaughtException", (err) => end(129, "Uncaught Exception", err));
process.on("unhandledRejection", (reason, promise) => end(128, "Unhandled Promise Rejection", rejected(reason, promise)));

function rejected(reason, promise) {
  let text = "";
  try {
    text = String(reason);
  } catch {
    // it has no text
  }
  return Object.assign(new RuntimeError("Runtime.UnhandledPromiseRejection", text), { reason, promise });
}

let handler;
try {
  handler = await load();
} catch (err) {
  await fail("init/error", err, "Uncaught Exception");
  process.exit(1);
}
under = null;

for (;;) {
  const next = await call("GET", "invocation/next");
  const h = next.headers;
  requestId = h["lambda-runtime-aws-request-id"];
  if (h["lambda-runtime-trace-id"]) process.env._X_AMZN_TRACE_ID = h["lambda-runtime-trace-id"];
  const deadline = Number(h["lambda-runtime-deadline-ms"]);
  const context = {
    callbackWaitsForEmptyEventLoop: true,
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    invokedFunctionArn: h["lambda-runtime-invoked-function-arn"],
    clientContext: h["lambda-runtime-client-context"] && JSON.parse(h["lambda-runtime-client-context"]),
    awsRequestId: requestId,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  };
  const answer = `invocation/${requestId}/`;
  under = answer + "error";
  try {
    const invoke = handler[streaming] === "response" ? runStreaming : run;
    const result = await invoke(handler, JSON.parse(next.body), context);
    under = null;
    let body = result;
    try {
      if (invoke === run) body = JSON.stringify(result === undefined ? null : result);
      if (body === undefined) body = "null";
    } catch {
      throw new RuntimeError("Runtime.UnserializableResponse", "Unable to stringify response body as json");
    }
    await call("POST", answer + "response", body, { "Content-Type": "application/json" });
  } catch (err) {
    under = null;
    await fail(answer + "error", err, "Invoke Error");
  }
}
