import { defineEvalConfig } from "eve/evals";

export default defineEvalConfig({});
