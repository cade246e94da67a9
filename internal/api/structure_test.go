package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// addStructure adds one entity of every kind to table orders.
func addStructure(t *testing.T, a *apitest.API) {
	t.Helper()

	asOwner(t, a, `
		alter table public.orders add constraint noted check (note <> 'nothing');
		create index noted_index on public.orders (note);
		create policy own on public.orders to authenticated using (false); create policy old on public.orders using (false);
		create type public.mood as enum ('good', 'bad'); create type public.old_mood as enum ('good');
		create table public.old (a text, b text constraint old_b_check check (b <> ''));
		create index old_index on public.old (b)`)

	a.Post("/tables/old/compaction", "").Want(201)
}

// structureCalls returns the operations on the structure of the project's database.
func (f fixture) structureCalls() []call {
	return []call{
		{"updateTable", "PUT", "/tables/orders", `{"comment": "more"}`, 4},
		{"duplicateTable", "POST", "/tables/orders/duplicate", `{"name": "copy"}`, 4},
		{"updateColumn", "PUT", "/tables/orders/columns/note", `{"comment": "more"}`, 4},
		{"listConstraints", "GET", "/tables/orders/constraints", "", 5},
		{"createConstraint", "POST", "/tables/orders/constraints", `{"type": "unique", "columns": ["note"]}`, 4},
		{"validateConstraint", "PUT", "/tables/orders/constraints/noted/validate", "", 4},
		{"listIndexes", "GET", "/tables/orders/indexes", "", 5},
		{"createIndex", "POST", "/tables/orders/indexes", `{"columns": ["note", "id"]}`, 4},
		{"deleteIndex", "DELETE", "/tables/old/indexes/old_index", "", 4},
		{"createCompaction", "POST", "/tables/orders/compaction", "", 4},
		{"getCompaction", "GET", "/tables/old/compaction", "", 5},
		{"listPolicies", "GET", "/tables/orders/policies", "", 5},
		{"createPolicy", "POST", "/tables/orders/policies",
			`{"name": "more", "roles": ["authenticated"], "using": "true"}`, 4},
		{"updatePolicy", "PUT", "/tables/orders/policies/own", `{"using": "true"}`, 4},
		{"deletePolicy", "DELETE", "/tables/orders/policies/old", "", 4},
		{"listGrants", "GET", "/tables/orders/grants", "", 5},
		{"updateGrants", "PUT", "/tables/orders/grants", `{"grants": [{"role": "anon", "privileges": ["select"]}]}`, 4},
		{"listEnums", "GET", "/enums", "", 5},
		{"createEnum", "POST", "/enums", `{"name": "more_mood", "values": ["a"]}`, 4},
		{"createEnumValue", "POST", "/enums/mood/values", `{"value": "more"}`, 4},
		{"renameEnumValue", "PUT", "/enums/mood/values/good", `{"value": "better"}`, 4},
		{"deleteEnum", "DELETE", "/enums/old_mood", "", 4},
		{"listExtensions", "GET", "/extensions", "", 5},
		{"createExtension", "POST", "/extensions", `{"name": "tsm_system_rows"}`, 4},
		{"deleteExtension", "DELETE", "/extensions/tsm_system_rows", "", 4},
		{"deleteConstraint", "DELETE", "/tables/old/constraints/old_b_check", "", 4},
		{"deleteColumn", "DELETE", "/tables/old/columns/a", "", 4},
		{"deleteTable", "DELETE", "/tables/old", "", 4},
	}
}

// entitySetups maps operations to functions that create the entity to delete, under a unique name.
var entitySetups = map[string]func(t *testing.T, a *apitest.API, names map[string]string){
	"getBackupSchedule": oldSchedule, "deleteBackupSchedule": oldSchedule,
	"deleteTable": func(t *testing.T, a *apitest.API, names map[string]string) {
		names["tableUUID"] = a.CreateTable("to_delete" + names["n"]).Metadata("uuid").(string)
	},
	"deleteColumn": func(t *testing.T, a *apitest.API, names map[string]string) {
		names["columnName"] = "to_delete" + names["n"]
		asOwner(t, a, "alter table public.orders add column "+names["columnName"]+" text")
	},
	"deleteIndex": func(t *testing.T, a *apitest.API, names map[string]string) {
		names["indexName"] = "to_delete" + names["n"]
		asOwner(t, a, "create index "+names["indexName"]+" on public.orders (note)")
	},
	"createCompaction": func(t *testing.T, a *apitest.API, names map[string]string) {
		names["tableUUID"] = a.CreateTable("compacted" + names["n"]).Metadata("uuid").(string)
	},
	"getCompaction": func(t *testing.T, a *apitest.API, names map[string]string) {
		a.Post("/tables/"+names["tableUUID"]+"/compaction", "") // refused if one is running
	},
	"deletePolicy": func(t *testing.T, a *apitest.API, names map[string]string) {
		names["policyName"] = "to_delete" + names["n"]
		asOwner(t, a, "create policy "+names["policyName"]+" on public.orders using (false)")
	},
	"deleteEnum": func(t *testing.T, a *apitest.API, names map[string]string) {
		names["enumName"] = "to_delete" + names["n"]
		asOwner(t, a, "create type public."+names["enumName"]+" as enum ()")
	},
	"deleteExtension": func(t *testing.T, a *apitest.API, names map[string]string) {
		execute(t, a, "create schema if not exists extensions; create extension if not exists "+names["extensionName"]+
			" schema extensions")
	},
	"deleteConstraint": func(t *testing.T, a *apitest.API, names map[string]string) {
		names["constraintName"] = "to_delete" + names["n"]
		asOwner(t, a, "alter table public.orders add constraint "+names["constraintName"]+" check (true)")
	},
}

// tableOf returns the prefix of a path that names a table, or the whole path.
func tableOf(path string) string {
	parts := strings.SplitN(path, "/", 4)
	return strings.Join(parts[:min(3, len(parts))], "/")
}
