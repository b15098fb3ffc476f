import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    fileParallelism: false, // one process at a time: laws are tested with many draws
    testTimeout: 120_000,
  },
});
