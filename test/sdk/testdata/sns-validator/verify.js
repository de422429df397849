// Validates each line of the standard input as the text of an SNS message, and
// answers each with a line: "ok", or why not. The argument is the host that
// certificates may come from.
"use strict";

const MessageValidator = require("sns-validator");
const validator = new MessageValidator(new RegExp("^" + process.argv[2].replaceAll(".", "\\.") + "$"));
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter((line) => line !== "");

(function next() {
  if (lines.length === 0) return;
  validator.validate(JSON.parse(lines.shift()), (err) => {
    console.log(err ? err.message : "ok");
    next();
  });
})();
