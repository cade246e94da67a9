package cli

import "testing"

func TestParseColumn(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]column{
		"id bigint primary key": {
			Name: "id", Type: "bigint", Primary: true,
		},
		"Title TEXT NOT NULL UNIQUE": {
			Name: "title", Type: "TEXT", NotNull: true, Unique: true,
		},
		"price numeric(10, 2) default 9.90 not null": {
			Name: "price", Type: "numeric(10, 2)", DefaultValue: "9.90", NotNull: true,
		},
		"at timestamp with time zone default now()": {
			Name: "at", Type: "timestamp with time zone", DefaultValue: "now()",
		},
		"state text default 'not null'": {
			Name: "state", Type: "text", DefaultValue: "'not null'",
		},
		"note text default null": {
			Name: "note", Type: "text", DefaultValue: "null",
		},
		`"Tag s" text[] null`: {
			Name: "Tag s", Type: "text[]",
		},
		"author bigint references app.authors (id)": {
			Name: "author", Type: "bigint", ReferenceTable: "app.authors", ReferenceColumn: "id",
		},
		"a int references authors(id) not null unique": {
			Name: "a", Type: "int", ReferenceTable: "authors", ReferenceColumn: "id", NotNull: true, Unique: true,
		},
	} {
		if got, err := parseColumn(text); err != nil || got != want {
			t.Errorf("parseColumn(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}

	for text, want := range map[string]string{
		"":                              "takes a name and a type: 'id bigint primary key'",
		"id":                            "takes a name and a type: 'id bigint primary key'",
		"id primary key":                "takes a name and a type: 'id bigint primary key'",
		"a int check (a > 0)":           `takes no "check"; socle sql run takes any SQL`,
		"a int references b":            "needs the column after references: 'author bigint references authors (id)'",
		"a int references b (c) on x":   `takes no "on"; socle sql run takes any SQL`,
		"a text default 'x":             "has a quote without an end",
		"a int primary":                 `takes no "primary"; socle sql run takes any SQL`,
		"id int generated as identity ": `takes no "generated"; socle sql run takes any SQL`,
	} {
		if _, err := parseColumn(text); err == nil || err.Error() != want {
			t.Errorf("parseColumn(%q) = %v, want %s", text, err, want)
		}
	}
}
