export function wireTypes(schema: unknown): Promise<string>;
export function readSchema(): Promise<unknown>;
