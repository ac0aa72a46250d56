import { DenoProcess, type Outcome, type ProcessOptions, type Variables } from "./process.ts";

/** The service, on a port that is free unless told otherwise. */
export class ServerProcess extends DenoProcess {
  port = 0;

  constructor(variables: Variables, { runtime = [], ...options }: ProcessOptions = {}, ...args: string[]) {
    super(["-P", ...runtime, "main.ts", ...args], { PORT: "0", HOST: "127.0.0.1", ...variables }, options);
  }

  /** Starts the service and waits until it says where it listens. */
  static async start(variables: Variables, options?: ProcessOptions): Promise<ServerProcess> {
    return await new ServerProcess(variables, options).listening();
  }

  /** Waits until it says where it listens. */
  async listening(): Promise<this> {
    this.port = Number(await this.wrote("stderr", /^Listening on http:\/\/localhost:(\d+)\/$/m));
    return this;
  }

  /** Has it stop by itself. */
  async stop(): Promise<Outcome> {
    this.signal("SIGTERM");
    return await this.ended();
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }
}

/** Starts the service in the expectation that it ends by itself. */
export function runServer(variables: Variables, ...args: readonly string[]): Promise<Outcome> {
  return new ServerProcess(variables, {}, ...args).ended();
}

/** Runs an operator's command, such as `["accounts", "list"]`. */
export function runCommand(args: readonly string[], variables: Variables): Promise<Outcome> {
  return new DenoProcess(["-P", "src/cli.ts", ...args], variables).ended();
}
