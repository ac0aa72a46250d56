/** The operator token of the services here. */
export const OPERATOR_TOKEN = "the-operators-token-in-this-one-test";
/** Names of the documents, and the paths of what they describe. */
export const DOCUMENTS = [["clients", "/v1"], ["operators", "/operator/v1"]] as const;

/** The text of the document of the operations below this URL. */
export async function documentAt(url: string, token: string = OPERATOR_TOKEN): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  return await (await fetch(`${url}/openapi.json`, { headers })).text();
}
