// Generates src/common/wire.ts, the TypeScript types of the contract, from src/common/wire.schema.json.
// The schema itself is written by `python -m nnsight_lab.widgets.wire > src/common/wire.schema.json`.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { compile } from "json-schema-to-typescript";

const SCHEMA = "src/common/wire.schema.json";
const TYPES = "src/common/wire.ts";

/** The text of wire.ts for a contract. */
export async function wireTypes(schema) {
  const names = Object.keys(schema.$defs);
  // A root that mentions every definition, so that each becomes an exported type under its own name.
  const root = {
    ...schema,
    title: "Wire",
    type: "object",
    additionalProperties: false,
    required: names,
    properties: Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/${name}` }])),
  };
  return compile(root, "Wire", {
    bannerComment: "// Generated from wire.schema.json by `npm run wire`: do not edit.",
    additionalProperties: false,
    style: { printWidth: 110, semi: true, tabWidth: 2 },
  });
}

export async function readSchema() {
  return JSON.parse(await readFile(SCHEMA, "utf8"));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeFile(TYPES, await wireTypes(await readSchema()));
}
