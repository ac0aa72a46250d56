import * as answer from "./browser/answer.ts";
import * as answerView from "./browser/answer_view.ts";
import * as requestConsole from "./browser/console.ts";
import * as dom from "./browser/dom.ts";
import * as exchange from "./browser/exchange.ts";
import * as key from "./browser/key.ts";
import * as meters from "./browser/meters.ts";
import * as pause from "./browser/pause.ts";
import * as request from "./browser/request.ts";
import * as samples from "./browser/samples.ts";
import * as start from "./browser/start.ts";

const MODULES: readonly Readonly<Record<string, unknown>>[] = [
  start,
  key,
  requestConsole,
  request,
  samples,
  exchange,
  answer,
  answerView,
  meters,
  pause,
  dom,
];

/**
 * The page's script: the functions of the modules above, as JavaScript, which Deno makes of them when it loads
 * them. So each module there consists of exported functions alone, and each function knows the others by name.
 */
export const SCRIPT: string = [
  '"use strict"; (() => {',
  ...MODULES.flatMap((module) => Object.values(module)).map(String),
  "start(); })();",
].join("\n");
