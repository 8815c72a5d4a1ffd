// What the kernel needs of sucrase.
const { transform } = require("./index");
const { parse } = require("./parser");
const { TokenType } = require("./parser/tokenizer/types");

const OPTIONS = { transforms: ["typescript"], keepUnusedImports: true, disableESTransforms: true };
exports.strip = (code) => transform(code, OPTIONS).code;
exports.read = (code) => ({ file: parse(code, false, false, false), types: TokenType });
