// The code cache of a function's module: what V8 and Deno keep of it in Deno's own databases, so
// that another process neither parses nor compiles it again.
//
// V8 trusts such a cache as it trusts its own memory. So it is made by a process in which nothing
// of the function runs, and is put back before the function does.

import { DatabaseSync } from "node:sqlite";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const databases = [
  { file: "v8_code_cache_v2", table: "codecache", columns: ["type", "source_hash", "data"] },
  { file: "dep_analysis_cache_v2", table: "moduleinfocache", columns: ["media_type", "source_hash", "module_info"] },
];

const pause = 5; // milliseconds
const attempts = 400; // Deno writes in the background

function open(file, options) {
  return new DatabaseSync(`${Deno.env.get("DENO_DIR")}/${file}`, options);
}

function read({ file, table, columns }, specifier) {
  const database = open(file, { readOnly: true });
  try {
    const statement = database.prepare(`select ${columns} from ${table} where specifier = ?`);
    statement.setReadBigInts(true);
    return statement.get(specifier);
  } finally {
    database.close();
  }
}

// compile returns the cache of a module, a line of JSON before V8's data. It is empty if Deno keeps
// none.
export async function compile(folder, name) {
  // The first import fails as it runs, when all modules are compiled. So the second never runs.
  await Deno.writeTextFile(`${folder}/stop.js`, "throw null;");
  await Deno.writeTextFile(`${folder}/compile.js`, `import "./stop.js"; import "./${name}";`);
  const failure = await import(`file://${folder}/compile.js`).catch((error) => error);
  if (failure !== null) return new Uint8Array();

  const specifier = `file://${folder}/${name}`;
  for (let i = 0; i < attempts; i++) {
    const rows = databases.map((database) => read(database, specifier));
    if (rows.every((row) => row !== undefined)) return pack(rows);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return new Uint8Array();
}

function pack(rows) {
  const data = rows[0].data;
  const plain = (key, value) => key === "data" ? null : typeof value === "bigint" ? `${value}` : value;
  const line = encoder.encode(JSON.stringify(rows, plain) + "\n");
  const packed = new Uint8Array(line.length + data.length);
  packed.set(line);
  packed.set(data, line.length);
  return packed;
}

// restore lets Deno find the cache of a module that it has not loaded yet. Without one, or with one
// of another release of Deno, the module is compiled.
export function restore(specifier, packed) {
  const end = packed.indexOf(10);
  if (end < 0) return;

  try {
    const rows = JSON.parse(decoder.decode(packed.subarray(0, end)));
    rows[0].data = packed.subarray(end + 1);
    databases.forEach((database, i) => write(database, specifier, rows[i]));
  } catch (error) {
    console.error("The code cache is not used:", error.message);
  }
}

function write({ file, table, columns }, specifier, row) {
  const values = columns.map((name) => /type|hash/.test(name) ? BigInt(row[name]) : row[name]);
  const database = open(file);
  try {
    const statement = database.prepare(`insert or replace into ${table} (specifier, ${columns}) values (?, ?, ?, ?)`);
    statement.run(specifier, ...values);
  } finally {
    database.close();
  }
}
