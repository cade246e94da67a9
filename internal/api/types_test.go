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

// TestGetTypesOfValues checks the types of values that are no text, number or enum in JSON, and of
// functions that compute a column or a relationship.
func TestGetTypesOfValues(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/extensions", `{"name": "hstore"}`).Want(201)
	asOwner(t, a, `
		create schema hidden;
		create type address as (street text, number integer);
		create type hidden.secret as (a int);
		create domain natural_number as integer check (value >= 0);
		create table shops (id integer primary key, address address not null, others address[], attributes extensions.hstore, owner oid, secret hidden.secret);
		create table visits (shop integer references shops, at timestamptz);
		create function age(shop shops) returns interval language sql stable as $$ select interval '1 day' $$;
		create function size(shops) returns integer language sql stable as 'select 1';
		create function address(shop shops) returns text language sql stable as $$ select 'a column wins' $$;
		create function last_visit(shops) returns setof visits rows 1 language sql stable as 'select * from visits where shop = $1.id limit 1';
		create function move(shop integer, target address, count natural_number) returns address language sql as 'select target'`)

	source := a.Get("/projects/" + a.Project + "/types").Want(200).Get("source").(string)
	for _, want := range []string{
		`        Row: {
          address: Database["public"]["CompositeTypes"]["address"]
          attributes: Json | null
          id: number
          others: Database["public"]["CompositeTypes"]["address"][] | null
          owner: string | null
          secret: Record<string, unknown> | null
          age: string | null
          size: number | null
        }
`,
		`        Insert: {
          address: Database["public"]["CompositeTypes"]["address"]
          attributes?: Json | null
          id: number
          others?: Database["public"]["CompositeTypes"]["address"][] | null
          owner?: string | null
          secret?: Record<string, unknown> | null
        }
`,
		`age: { Args: { "": Database["public"]["Tables"]["shops"]["Row"] }; Returns: string }`,
		`size: { Args: { "": Database["public"]["Tables"]["shops"]["Row"] }; Returns: number }`,
		`last_visit: { Args: { "": Database["public"]["Tables"]["shops"]["Row"] }; Returns: Database["public"]["Tables"]["visits"]["Row"][]; SetofOptions: { from: "shops"; to: "visits"; isOneToOne: true; isSetofReturn: true } }`,
		`move: { Args: { shop: number; target: Database["public"]["CompositeTypes"]["address"]; count: number }; Returns: Database["public"]["CompositeTypes"]["address"] }`,
		`    CompositeTypes: {
      address: {
        street: string | null
        number: number | null
      }
    }
`,
	} {
		if !strings.Contains(source, want) {
			t.Errorf("types lack\n%s\nin\n%s", want, source)
		}
	}
}
