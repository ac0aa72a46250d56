import { isUrl } from "../engine/mod.ts";
import type { Config } from "./config.ts";

/** Names and addresses that only this machine reaches, as a URL or a listener has them. */
const THIS_MACHINE =
  /^(?:(?:.+\.)?localhost|127\.[\d.]+|\[?::1\]?|\[?::ffff:(?:127\.[\d.]+|7f[\da-f]{2}:[\da-f]+)\]?)$/;

/** Warns if clients can choose their address, because they may reach the service without its proxy. */
export function warningsOfAddress(
  { clientAddressHeader, onDeploy }: Pick<Config, "clientAddressHeader" | "onDeploy">,
  address: Deno.Addr,
): string[] {
  if (clientAddressHeader === undefined || onDeploy) return [];
  if (!("hostname" in address) || THIS_MACHINE.test(address.hostname)) return [];
  return [
    `Warning: clients that reach port ${address.port} without the proxy can choose their own address, because ` +
    "CLIENT_ADDRESS_HEADER is set. Set HOST=127.0.0.1, or let only the proxy reach this port.",
  ];
}

/** Warns if commands send the operator's token to another machine without encryption. */
export function warningsOfService(serviceUrl: string): string[] {
  return warningsOfToken("the operator's token", "SERVICE_URL", serviceUrl);
}

/** Warns if the service or a command sends the KV's token to another machine without encryption. */
export function warningsOfKv({ kvPath, kvToken }: Pick<Config, "kvPath" | "kvToken">): string[] {
  return kvToken === "" ? [] : warningsOfToken("DENO_KV_ACCESS_TOKEN", "KV_PATH", kvPath);
}

function warningsOfToken(token: string, variable: string, value: string | undefined): string[] {
  if (value === undefined || !isUrl(value)) return [];
  const { protocol, hostname } = new URL(value);
  if (protocol === "https:" || THIS_MACHINE.test(hostname)) return [];
  return [`Warning: ${token} is sent to ${hostname} without encryption. Begin ${variable} with https.`];
}
