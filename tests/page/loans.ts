// A part that nothing else knows of: tools are lent. The page must show its list, its filter and its action.
import {
  boolean,
  integer,
  list,
  named,
  object,
  oneOf,
  optional,
  output,
  text,
  timestamp,
} from "../../src/web/schema.ts";
import { ACCESS, createResponse, operation, type Part, valueResponse } from "../../src/part.ts";
import { OPERATORS_PAGE, PAGE } from "../../src/page/page_operations.ts";

const COMMON = {
  access: ACCESS.operator,
  tag: { name: "Loans", description: "Tools that are lent" },
} as const;
const PATH = "/operator/v1/loans";
const LOAN = named(
  "Loan",
  output({
    loanNumber: integer(1, 9),
    borrower: text(),
    tool: oneOf(["saw", "drill"]),
    dueAt: timestamp(),
    note: optional(text()),
    hours: output({ used: integer(0, 99), allowed: integer(0, 99) }),
  }),
);
const DUE = "2027-01-11T09:00:00.000Z";
const lent = new Map(
  [["Ann", "saw"], ["<b>Ben</b>", "drill"], ["Cleo", "saw"]].map(([borrower, tool], index) => [
    index + 1,
    { loanNumber: index + 1, borrower, tool, dueAt: DUE, hours: { used: index * 5, allowed: 10 } },
  ]),
);

/** The part. */
export const LOANS: Part = {
  operations: () => [],
  operatorOperations: () => [
    operation({
      ...COMMON,
      id: "listLoans",
      method: "GET",
      path: PATH,
      summary: "List the loans",
      query: { tool: optional(oneOf(["saw", "drill"])), after: optional(integer(0, 9)) },
      answers: { 200: { description: "Loans", body: named("Loans", list(LOAN, 9)), headers: ["Link"] } },
    }, ({ query: { tool, after = 0 } }) => {
      const loans = [...lent.values()].filter((loan) =>
        loan.loanNumber > after && loan.tool === (tool ?? loan.tool)
      );
      const rest = tool === undefined ? "" : `&tool=${tool}`;
      const next = loans.length > 2
        ? { link: `<https://elsewhere.example${PATH}?after=2${rest}>; rel="next"` }
        : {};
      return valueResponse(loans.slice(0, 2), { headers: next });
    }),
    operation({
      ...COMMON,
      id: "returnLoan",
      method: "POST",
      path: `${PATH}/{loanNumber}/return`,
      summary: "Take the tool back",
      confirm: "Is the tool in order?",
      params: { loanNumber: integer(1, 9) },
      body: object({ isBroken: boolean(), remark: optional(text({ max: 20 })) }),
      answers: { 204: { description: "It is back" } },
    }, ({ params: { loanNumber } }) => {
      lent.delete(loanNumber);
      return createResponse(null, { status: 204 });
    }),
    operation({
      ...COMMON,
      id: "remindOfLoans",
      method: "POST",
      path: `${PATH}/remind`,
      summary: "Remind the borrowers",
      body: object({ loanNumbers: list(integer(1, 9), 9) }),
      answers: { 204: { description: "They were reminded" } },
    }, ({ body: { loanNumbers } }) => createResponse(null, { status: loanNumbers.length === 1 ? 204 : 500 })),
    operation({
      ...COMMON,
      id: "closeDesk",
      method: "POST",
      path: "/operator/v1/desk/close",
      summary: "Close the desk",
      answers: { 204: { description: "It is closed" } },
    }, () => createResponse(null, { status: 204 })),
  ],
};

/** The parts of a service that has it. */
export const PARTS: readonly Part[] = [LOANS, PAGE, OPERATORS_PAGE];
