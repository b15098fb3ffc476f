// Builds dist/index.js, minified, and its type declarations.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { build } from "esbuild";

rmSync("dist", { recursive: true, force: true });
await build({
  entryPoints: ["src/index.ts"],
  outfile: "dist/index.js",
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
});
execFileSync("node_modules/.bin/tsc", ["--project", "tsconfig.build.json"], { stdio: "inherit" });
