import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    fileParallelism: false, // one process at a time, because tests of laws draw many samples
    testTimeout: 120_000,
  },
});
