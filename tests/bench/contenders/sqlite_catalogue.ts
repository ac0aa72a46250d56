import { DatabaseSync } from "node:sqlite";
import { FOLDER } from "./environment.ts";
import { ANIMALS, type ApiKey, apiKeyRecords, hashKey, type NewPet, type Pet } from "./fixture.ts";

const SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE api_keys (hash TEXT PRIMARY KEY, id TEXT, per_minute INTEGER, per_day INTEGER) WITHOUT ROWID;
  CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT, category_id INTEGER, status TEXT);
  CREATE INDEX pets_by_status ON pets (status, id);
`;
const PET = "id, name, category_id AS categoryId, status";

/** The keys and the animals in SQLite, as durable as Deno KV keeps its own. */
export interface SqliteCatalogue {
  findKey(key: string): ApiKey | undefined;
  list(limit: number, status?: string): Pet[];
  get(id: number): Pet | undefined;
  add(pet: NewPet): Pet;
}

/** Opens a new catalogue which already holds every key and every animal. */
export function openSqliteCatalogue(): SqliteCatalogue {
  const database = new DatabaseSync(`${FOLDER}/catalogue.sqlite`);
  database.exec(SCHEMA);
  const insertKey = database.prepare("INSERT INTO api_keys VALUES (?, ?, ?, ?)");
  const selectKey = database.prepare(
    "SELECT id, per_minute AS perMinute, per_day AS perDay FROM api_keys WHERE hash = ?",
  );
  const insertPet = database.prepare(
    `INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?) RETURNING ${PET}`,
  );
  const selectPet = database.prepare(`SELECT ${PET} FROM pets WHERE id = ?`);
  const selectPets = database.prepare(`SELECT ${PET} FROM pets ORDER BY id LIMIT ?`);
  const selectPetsByStatus = database.prepare(`SELECT ${PET} FROM pets WHERE status = ? ORDER BY id LIMIT ?`);

  const catalogue: SqliteCatalogue = {
    findKey: (key) => selectKey.get(hashKey(key)) as ApiKey | undefined,
    list: (limit, status) =>
      (status === undefined
        ? selectPets.all(limit)
        : selectPetsByStatus.all(status, limit)) as unknown as Pet[],
    get: (id) => selectPet.get(id) as Pet | undefined,
    add: ({ name, categoryId, status }) => insertPet.get(name, categoryId, status) as unknown as Pet,
  };
  for (const [hash, { id, perMinute, perDay }] of apiKeyRecords()) insertKey.run(hash, id, perMinute, perDay);
  for (const animal of ANIMALS) catalogue.add(animal);
  return catalogue;
}
