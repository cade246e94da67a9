import { Hono } from "hono";
import { cors } from "hono/cors";

const app = new Hono().basePath("/api");
app.use("*", cors());
app.get("/items/:id", (c) => c.json({ id: c.req.param("id"), q: c.req.query("q") }));
app.post("/items", async (c) => c.json(await c.req.json(), 201));

Deno.serve(app.fetch);
