import { pgTable, serial, text } from "drizzle-orm/pg-core";

export const authors = pgTable("authors", { id: serial("id").primaryKey(), name: text("name").notNull() });
