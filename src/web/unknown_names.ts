/** Maximum length of a name in a message, in code points. */
const MAX_SHOWN = 40;
const PLAIN = /^[\w.-]+$/;
/** Characters that a reader cannot see, such as controls, and those that change the order of others. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * A name that a client has sent, as messages show it: of bounded length, and with escapes for characters that could mislead or disrupt a terminal.
 */
export function shownName(name: string): string {
  // No code point has more than two units, so the cut text keeps enough of them.
  const cut = name.slice(0, 2 * MAX_SHOWN + 1);
  const points = [...cut];
  const text = points.length > MAX_SHOWN ? `${points.slice(0, MAX_SHOWN).join("")}…` : points.join("");
  if (PLAIN.test(text)) return text;
  return `"${text.replaceAll(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)}"`;
}

/**
 * The known name that a mistyped one resembles: apart from case, at most one of three characters is different. Undefined
 * if there is none.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = Infinity;
  for (const candidate of known) {
    const most = Math.max(1, Math.floor(candidate.length / 3));
    if (Math.abs(name.length - candidate.length) > most) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= most && distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** The fewest characters to insert, delete, replace, or swap with their neighbour (optimal string alignment). */
function editDistance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        at(current, column - 1) + 1,
        at(last, column) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(beforeLast, column - 2) + 1 : Infinity,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return at(last, other.length);
}

function at(numbers: readonly number[], index: number): number {
  return numbers[index] ?? Infinity;
}
