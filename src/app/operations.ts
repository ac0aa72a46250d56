import { ambiguousCodeIn, conflictIn, errorsOfAll, faultsOf } from "../web/openapi.ts";
import { ACCESS, type Operation, PROXY_ERRORS } from "../service/mod.ts";
import { ResourceError } from "../resource/mod.ts";

/** What operations must fit. */
export interface Bounds {
  /** The ids of those that optional parts have. */
  readonly ofParts: ReadonlySet<string>;
  /** The names of all collections. */
  readonly collections: readonly string[];
}

/** Checks the declarations of all operations. @throws {ResourceError} */
export function requireValidOperations(operations: readonly Operation[], bounds: Bounds): void {
  const [fault] = faultsIn(operations, bounds);
  if (fault !== undefined) throw new ResourceError(`${fault}.`);
}

/** What is wrong with operations. */
function* faultsIn(operations: readonly Operation[], { ofParts, collections }: Bounds): Generator<string> {
  for (const operation of operations) {
    const { id, access, tag } = operation;
    const name = ofParts.has(id) ? `The operation ${id} of a part` : `The operation ${id}`;
    for (const fault of faultsOf(operation)) yield `${name} ${fault}`;
    if (ofParts.has(id) && access !== ACCESS.public && tag === undefined) {
      yield `${name} must have a tag, such as that of a collection: documents leave out operations without one`;
    }
    const unknown = operation.collections.find((one) => !collections.includes(one));
    if (unknown !== undefined) yield `${name} must declare collections that there are, not ${unknown}`;
  }
  // Clients and operators have documents of their own.
  for (const own of Map.groupBy(operations, ({ access }) => access === ACCESS.operator).values()) {
    const conflict = conflictIn(own);
    if (conflict === undefined) continue;
    yield conflict.operations.some(({ id }) => ofParts.has(id))
      ? `A part shares ${conflict.name} with another part, a resource or the rest of the service: rename it`
      : `A resource shares ${conflict.name} with another or the rest of the service: rename it`;
  }
  const code = ambiguousCodeIn(errorsOfAll(operations, PROXY_ERRORS));
  if (code !== undefined) {
    yield `The error ${code} has two meanings: declare it once, or give one another code`;
  }
}
