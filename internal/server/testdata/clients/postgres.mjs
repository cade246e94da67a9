// Queries through node-postgres: a pool, named statements, a transaction, a notification.
import assert from "node:assert/strict";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 3 });

const doubled = await Promise.all([1, 2, 3, 4, 5, 6].map((n) =>
  pool.query({ name: "double", text: "select $1::int * 2 as n", values: [n] })));
assert.deepEqual(doubled.map((r) => r.rows[0].n), [2, 4, 6, 8, 10, 12]);

const client = await pool.connect();
await client.query("begin");
await client.query("create temporary table held (n int) on commit drop");
await client.query("insert into held select generate_series(1, 1000)");
assert.equal((await client.query("select count(*)::int as n from held")).rows[0].n, 1000);
await client.query("rollback");

const notified = new Promise((resolve) => client.on("notification", resolve));
await client.query("listen said");
await pool.query("notify said, 'hello'");
assert.equal((await notified).payload, "hello");

await assert.rejects(client.query("select nothing"), { code: "42703" });
client.release();
await pool.end();
