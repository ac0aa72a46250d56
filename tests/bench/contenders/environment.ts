/** The port the runner chose for this contender. */
export const PORT: number = Number(Deno.env.get("PORT"));

/** The folder the runner gave this contender for its data. */
export const FOLDER: string = Deno.env.get("BENCH_FOLDER") ?? ".";
