// Checks what arrives from the kernel against the contract, so that a page of one version never misreads a kernel of
// another: what does not fit is an error with the place in it, and is not shown.
import { type Schema, Validator } from "@cfworker/json-schema";
import type { Wire } from "./wire";
import schema from "./wire.schema.json";

const validators = new Map<string, Validator>();

/** What does not fit the contract. */
export class ContractError extends Error {
  override readonly name = "ContractError";
}

function validatorOf(name: string): Validator {
  let validator = validators.get(name);
  if (validator === undefined) {
    validator = new Validator({ ...schema, $ref: `#/$defs/${name}` } as Schema, "2020-12", true);
    validators.set(name, validator);
  }
  return validator;
}

/** `value` as the type `name` of the contract; throws ContractError where it is not. */
export function checked<Name extends keyof Wire & string>(name: Name, value: unknown): Wire[Name] {
  const found = validatorOf(name).validate(value);
  if (found.valid) return value as Wire[Name];
  const last = found.errors[found.errors.length - 1];
  const where = last === undefined ? "" : ` at ${last.instanceLocation}: ${last.error}`;
  throw new ContractError(
    `The kernel and this page are of different versions: ${name} does not fit${where}. ` +
      "Restart the kernel and reload the page.",
  );
}
