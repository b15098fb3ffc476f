// What a page has to load, in bytes after gzip. A page that protects must not be slower to open than one that does not.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MOST = 14_800;
const size = gzipSync(readFileSync("dist/index.js"), { level: 9 }).length;
console.log(`dist/index.js: ${size.toLocaleString("en")} bytes after gzip, of at most ${MOST.toLocaleString("en")}`);
if (size > MOST) process.exit(1);
