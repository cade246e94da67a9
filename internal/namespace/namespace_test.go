package namespace

import "testing"

func TestIsReserved(t *testing.T) {
	t.Parallel()

	for _, schema := range append([]string{"information_schema", "pg_catalog", "pg_temp_3", "pg_mine"}, Platform...) {
		if !IsReserved(schema) {
			t.Errorf("%s is not reserved", schema)
		}
	}

	for _, schema := range append([]string{"public", "app", "pgx", "Auth", "auth_", "pg"}, Services...) {
		if IsReserved(schema) {
			t.Errorf("%s is reserved", schema)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()

	if got, want := List("a", "b"), `('a', 'b')`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
