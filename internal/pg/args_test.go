package pg_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestArguments executes statements with named arguments twice, so that the second run uses the
// cache.
func TestArguments(t *testing.T) {
	t.Parallel()

	pool := connect(t)
	for range 2 {
		got, err := pg.Value[string](t.Context(), pool, `select @a::text || @b || '@a' || @a`,
			pgx.StrictNamedArgs{"a": "1", "b": "2"})
		if err != nil || got != "12@a1" {
			t.Errorf("got %q, %v", got, err)
		}

		for _, args := range []pgx.StrictNamedArgs{
			{"a": "1"}, {"a": "1", "c": "2"}, {"a": "1", "b": "2", "c": "3"}, nil,
		} {
			if got, err := pg.Value[string](t.Context(), pool, `select @a::text || @b || '@a' || @a`,
				args); err == nil {
				t.Errorf("%v: got %q, want an error", args, got)
			}
		}

		if got, err := pg.Value[int](t.Context(), pool, `select $1::int + 1`, 1); got != 2 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	}
}

// TestUUIDs sends UUIDs to PostgreSQL and back in every type of argument and row.
func TestUUIDs(t *testing.T) {
	t.Parallel()

	type row struct {
		Plain, Absent uuid.UUID
		Valid, Null   uuid.NullUUID
		Pointer, None *uuid.UUID
		Many          []uuid.UUID
		Text          string
	}

	id := uuid.New()
	want := row{
		Plain:   id,
		Valid:   uuid.NullUUID{UUID: id, Valid: true},
		Pointer: &id,
		Many:    []uuid.UUID{id, uuid.Nil},
		Text:    id.String(),
	}

	got, err := pg.One[row](t.Context(), connect(t), `
		select @plain::uuid as plain, null::uuid as absent, @valid::uuid as valid, @null::uuid as null, @pointer::uuid as pointer, @none::uuid as none, @many::uuid[] as many, @text::text as text`,
		pgx.StrictNamedArgs{
			"plain": id, "valid": want.Valid, "null": want.Null, "pointer": want.Pointer, "none": want.None,
			"many": want.Many, "text": id,
		})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestJSON reads JSON as its text, and into values.
func TestJSON(t *testing.T) {
	t.Parallel()

	type row struct {
		Text, Binary, Absent json.RawMessage
		Value                map[string]int
		Pointer, None        *json.RawMessage
	}

	raw := json.RawMessage(`{"b" : 1}`)
	want := row{Text: raw, Binary: json.RawMessage(`{"b": 1}`), Value: map[string]int{"b": 1}, Pointer: &raw}

	got, err := pg.All[row](t.Context(), connect(t), `
		select @text::json as text, @text::jsonb as binary, null::jsonb as absent, @text::jsonb as value, @text::json as pointer,
			null::json as none
		from generate_series(1, 2)`, pgx.StrictNamedArgs{"text": string(raw)})
	if diff := cmp.Diff([]row{want, want}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// connect returns a pool on a database of the test's own.
func connect(t *testing.T) *pgxpool.Pool {
	t.Helper()

	c, err := pg.PoolConfig(pgtest.URL(t), 2)
	if err != nil {
		t.Fatal(err)
	}

	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	return pool
}
