/** A bare `Deno.serve` which repeats one response of the service, without a look at the request. */

import { PORT } from "./environment.ts";
import { constantReply } from "./original.ts";

Deno.serve({ port: PORT, hostname: "127.0.0.1", onListen() {} }, () => constantReply());
