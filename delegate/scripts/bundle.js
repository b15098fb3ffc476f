// Writes the readable bundle that the service's page loads. With --check, fails if the committed file differs from a fresh build.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { build } from "esbuild";

const TARGET = "../src/tacit/service/web/delegate.js";
const { outputFiles } = await build({
  entryPoints: ["src/index.ts"],
  bundle: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "// Built from delegate/ by `npm run bundle`; do not edit.\n// @ts-nocheck: its sources were checked" },
  write: false,
});
const fresh = outputFiles[0].text;

if (process.argv.includes("--check")) {
  const kept = existsSync(TARGET) ? readFileSync(TARGET, "utf8") : "";
  if (kept !== fresh) {
    console.error("src/tacit/service/web/delegate.js is out of date: run `npm run bundle` in delegate/.");
    process.exit(1);
  }
} else {
  mkdirSync(dirname(TARGET), { recursive: true });
  writeFileSync(TARGET, fresh);
}
