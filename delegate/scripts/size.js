// Checks the size of the package after gzip, so that a page with the delegate opens as fast as one without.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MOST = 14_800;
const size = gzipSync(readFileSync("dist/index.js"), { level: 9 }).length;
console.log(`dist/index.js: ${size.toLocaleString("en")} bytes after gzip, of at most ${MOST.toLocaleString("en")}`);
if (size > MOST) process.exit(1);
