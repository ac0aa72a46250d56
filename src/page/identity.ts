import type { Identity } from "../service/mod.ts";
import { ResourceError } from "../resource/mod.ts";

/** @throws {ResourceError} if a colour of the page is no number. */
export function requireColours({ hues, chroma }: Pick<Identity, "hues" | "chroma">): void {
  for (const [name, hue] of Object.entries(hues)) {
    if (!Number.isFinite(hue)) {
      throw new ResourceError(`The hue ${name} of the identity must be a number of degrees, not ${hue}.`);
    }
  }
  if (!(Number.isFinite(chroma) && chroma >= 0)) {
    throw new ResourceError(`The chroma of the identity must be a number from 0, not ${chroma}.`);
  }
}
