import { StoreUnavailable } from "../kv/deadline.ts";
import type { Account } from "./account.ts";

/** An account, and its new key: the only time that it is known. */
export interface Issued {
  readonly account: Account;
  readonly apiKey: string;
}

/** It is not known whether a key was issued; if it was, it is this one. */
export class IssueInDoubt extends StoreUnavailable {
  override readonly name = "IssueInDoubt";
  readonly issued: Issued;

  constructor(issued: Issued, cause: unknown) {
    super("It is not known whether the key was issued", { cause });
    this.issued = issued;
  }
}
