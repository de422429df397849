"""Runs a handler of Python: speaks the Runtime API for it."""

import decimal
import http.client
import importlib
import json
import logging
import os
import sys
import time
import traceback

BASE = "/2018-06-01/runtime/"
JSON_LOGS = os.environ.get("AWS_LAMBDA_LOG_FORMAT") == "JSON"
LEVELS = {"TRACE": logging.NOTSET, "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING,
          "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}


class Context:
    """What a handler learns about its invocation."""

    def __init__(self, headers):
        self._deadline = int(headers["Lambda-Runtime-Deadline-Ms"])
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.invoked_function_arn = headers["Lambda-Runtime-Invoked-Function-Arn"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.tenant_id = None
        self.identity = Fields({}, "cognito_identity_id", "cognito_identity_pool_id")
        self.client_context = None
        given = headers["Lambda-Runtime-Client-Context"]
        if given:
            self.client_context = Fields(json.loads(given), "client", "custom", "env")
        if self.client_context and isinstance(self.client_context.client, dict):
            self.client_context.client = Fields(
                self.client_context.client,
                "installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name",
            )

    def get_remaining_time_in_millis(self):
        return max(0, self._deadline - int(time.time() * 1000))

    def log(self, message):
        sys.stdout.write(str(message))


class Fields:
    """What a client has given of an object; what it has not is None."""

    def __init__(self, given, *names):
        for name in names:
            setattr(self, name, given.get(name))


class RequestFilter(logging.Filter):
    """Gives log records the id of the request."""

    request_id = ""

    def filter(self, record):
        record.aws_request_id = RequestFilter.request_id
        return True


class TextFormatter(logging.Formatter):
    converter = time.gmtime

    def __init__(self):
        super().__init__(
            "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s", "%Y-%m-%dT%H:%M:%S"
        )


class JSONFormatter(logging.Formatter):
    """Writes a record as one object, with what it was given as extra."""

    OWN = set(logging.makeLogRecord({}).__dict__) | {"aws_request_id", "message", "asctime"}

    def format(self, record):
        fields = {
            "timestamp": now(record.created),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
        }
        if record.exc_info and record.exc_info[0]:
            kind, error, trace = record.exc_info
            fields["stackTrace"] = traceback.format_list(traceback.extract_tb(trace))
            fields["errorType"], fields["errorMessage"] = kind.__name__, str(error)
        fields["requestId"] = record.aws_request_id
        fields.update((k, v) for k, v in record.__dict__.items() if k not in self.OWN and k not in fields)
        return json.dumps(fields, ensure_ascii=False, default=str)


def now(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % (seconds % 1 * 1000)


def event(text):
    """Makes text one event of the log, with its newlines and apart from a line that has not ended."""
    text = text.rstrip("\n")
    if "\n" in text or "\x1f" not in text:
        text = "\x1e\x1f" + text.replace("\n", "\x1f")
    return text + "\n"


class Handler(logging.StreamHandler):
    terminator = ""

    def format(self, record):
        return event(super().format(record))

    def __init__(self):
        super().__init__(sys.stdout)
        self.setFormatter(JSONFormatter() if JSON_LOGS else TextFormatter())
        self.addFilter(RequestFilter())


class Failure(Exception):
    """A failure that has a name of its own."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


host, port = os.environ["AWS_LAMBDA_RUNTIME_API"].split(":")
connection = http.client.HTTPConnection(host, int(port), timeout=None)


def call(method, where, body=None, headers=None):
    connection.request(method, BASE + where, body, headers or {})
    answer = connection.getresponse()
    return answer.headers, answer.read()


# MOST_REPORTED bounds the characters of a failure's message, and those of its stack, so that its answer is never
# too large, whatever has to be escaped.
MOST_REPORTED = 500_000
MOST_NAMED = 1024


def message_of(error):
    try:
        return str(error)[:MOST_REPORTED]
    except Exception as e:  # the function's own __str__
        return "the message of the error cannot be had: it raised %s" % type(e).__name__[:MOST_NAMED]


def stack_of(frames):
    stack, left = [], MOST_REPORTED
    for frame in traceback.format_list(frames):
        left -= len(frame)
        if left < 0:
            break
        stack.append(frame)
    return stack


def describe(error, request_id):
    kind = error.kind if isinstance(error, Failure) else type(error).__name__[:MOST_NAMED]
    frames = traceback.extract_tb(error.__traceback__)
    frames = [
        (f.filename, f.lineno, f.name, f.line)  # without columns, which would be a line of carets
        for f in frames if f.filename != __file__ and "importlib" not in f.filename
    ]
    message = message_of(error)
    text = {
        "errorMessage": message,
        "errorType": kind,
        "requestId": request_id,
        "stackTrace": stack_of(frames),
    }
    if JSON_LOGS:
        sys.stdout.write(event(json.dumps({"timestamp": now(time.time()), "log_level": "ERROR", **text})))
    else:
        sys.stdout.write(event("[ERROR] %s: %s\nTraceback (most recent call last):\n%s" % (kind, message, "".join(text["stackTrace"]))))
    return kind, json.dumps(text)


def fail(where, error, request_id=""):
    kind, body = describe(error, request_id)
    kind = "".join(c if " " <= c <= "~" else "?" for c in kind)  # a header cannot have any name
    sys.stdout.flush()
    call("POST", where, body.encode(), {"Content-Type": "application/json", "Lambda-Runtime-Function-Error-Type": kind})


# The runtimes before 3.12 answer in ASCII.
ASCII = os.environ.get("AWS_EXECUTION_ENV") in ("AWS_Lambda_python3.10", "AWS_Lambda_python3.11")


def number(value):
    """A decimal number, which DynamoDB's resources have, as JSON has it."""
    if not isinstance(value, decimal.Decimal):
        raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)
    if value.is_nan():
        return float("nan")
    return int(value) if value.as_tuple().exponent == 0 else float(value)


def load():
    name = os.environ["_HANDLER"]
    module_name, dot, function = name.rpartition(".")
    if not dot:
        raise Failure("Runtime.MalformedHandlerName", "Bad handler '%s': not enough values to unpack (expected 2, got 1)" % name)
    module_name = module_name.replace("/", ".")
    try:
        module = importlib.import_module(module_name)
    except ImportError as e:
        raise Failure("Runtime.ImportModuleError", "Unable to import module '%s': %s" % (module_name, e)) from None
    except SyntaxError as e:
        raise Failure("Runtime.UserCodeSyntaxError", "Syntax error in module '%s': %s" % (module_name, e)) from None
    try:
        return getattr(module, function)
    except AttributeError:
        raise Failure("Runtime.HandlerNotFound", "Handler '%s' missing on module '%s'" % (function, module_name)) from None


def main():
    sys.path.insert(0, os.environ["LAMBDA_TASK_ROOT"])
    libraries = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python")
    if os.path.isdir(libraries):
        sys.path.insert(1, libraries)  # before what the machine has of them
    layers = os.environ.get("GODWIT_LAYERS")
    if layers:
        version = os.environ.get("AWS_EXECUTION_ENV", "").rpartition("_")[2]
        sys.path[1:1] = [os.path.join(layers, "python", "lib", version, "site-packages"), os.path.join(layers, "python")]
    logging.getLogger().addHandler(Handler())
    if JSON_LOGS:
        logging.getLogger().setLevel(LEVELS.get(os.environ.get("AWS_LAMBDA_LOG_LEVEL"), logging.INFO))
    try:
        handler = load()
    except BaseException as e:  # SystemExit too: the function cannot run
        fail("init/error", e)
        sys.exit(1)
    while True:
        headers, event = call("GET", "invocation/next")
        request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        RequestFilter.request_id = request_id
        os.environ["_X_AMZN_TRACE_ID"] = headers["Lambda-Runtime-Trace-Id"] or ""
        where = "invocation/%s/" % request_id
        try:
            result = handler(json.loads(event), Context(headers))
            try:
                body = json.dumps(result, ensure_ascii=ASCII, default=number).encode()
            except (TypeError, ValueError) as e:
                raise Failure("Runtime.MarshalError", "Unable to marshal response: %s" % e) from None
        except Exception as e:
            fail(where + "error", e, request_id)
            continue
        sys.stdout.flush()
        call("POST", where + "response", body, {"Content-Type": "application/json"})


if __name__ == "__main__":
    sys.path.pop(0)
    main()
