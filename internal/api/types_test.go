package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestGetTypes(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "note text", "at timestamptz", "tags text[]", "total numeric(10,2)")

	asOwner(t, a, `
		create type mood as enum ('good', 'so "so"');
		create table lines (order_id integer not null references orders, mood mood, n bigint generated always as identity primary key, "odd name" jsonb not null);
		create view totals with (security_invoker) as select id, total from orders;
		create function top(most integer, fewest integer default 0) returns table (id integer, why text) language sql as 'select 1, null::text';
		create function latest() returns setof orders language sql as 'select * from orders';
		create function nothing() returns void language sql as ''`)

	r := a.Get("/projects/"+a.Project+"/types").Want(200).Content("language", "typescript")
	source := r.Get("source").(string)
	for _, want := range []string{
		"      orders: {\n        Row: {\n          at: string | null\n          id: number\n          note: string | null\n          tags: string[] | null\n          total: number | null\n        }\n        Insert: {\n",
		"          n?: never\n", `          mood: Database["public"]["Enums"]["mood"] | null` + "\n",
		`      mood: "good" | "so \"so\""` + "\n", `          "odd name": Json` + "\n",
		`          order_id: number` + "\n",
		"foreignKeyName: \"lines_order_id_fkey\"\n            columns: [\"order_id\"]\n            isOneToOne: false\n            referencedRelation: \"orders\"\n            referencedColumns: [\"id\"]",
		"    Views: {\n      totals: {\n",
		`top: { Args: { most: number; fewest?: number }; Returns: { id: number; why: string }[] }`,
		`latest: { Args: never; Returns: Database["public"]["Tables"]["orders"]["Row"][]; SetofOptions: { from: "*"; to: "orders"; isOneToOne: false; isSetofReturn: true } }`,
		`nothing: { Args: never; Returns: undefined }`,
	} {
		if !strings.Contains(source, want) {
			t.Errorf("types lack\n%s\nin\n%s", want, source)
		}
	}

	a.Get("/projects/" + a.Project + "/types?language=cobol").Want(400)

	// Only the schemas of the rows API get types.
	asOwner(t, a, `create schema api; create table api.parcels (id integer primary key)`)
	a.Put("/projects/"+a.Project+"/rest-settings", `{"schemas": ["public", "api"]}`).Want(200)
	source = a.Get("/projects/" + a.Project + "/types").Want(200).Get("source").(string)
	for _, want := range []string{
		"  public: {\n", "      orders: {\n", "  api: {\n", "      parcels: {\n",
		`type DefaultSchema = Database["public"]`,
	} {
		if !strings.Contains(source, want) {
			t.Errorf("types of both schemas lack\n%s\nin\n%s", want, source)
		}
	}

	a.Put("/projects/"+a.Project+"/rest-settings", `{"schemas": ["api"]}`).Want(200)
	source = a.Get("/projects/" + a.Project + "/types").Want(200).Get("source").(string)
	if strings.Contains(source, "orders") || !strings.Contains(source, `type DefaultSchema = Database["api"]`) {
		t.Errorf("the types of api alone:\n%s", source)
	}
}
