package hook_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestCallFunction(t *testing.T) {
	t.Parallel()

	owner, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)

	if _, err := owner.Exec(t.Context(), `
		create function public.echo(event jsonb) returns jsonb language sql as 'select event';
		create function public.plain(event json) returns json language sql as 'select event';
		create function public.nothing(event jsonb) returns void language sql as 'select 1';
		create function public.huge(event jsonb) returns jsonb language sql as $$ select to_jsonb(repeat('é', 1000000)) $$;
		create function public.fails(event jsonb) returns jsonb language plpgsql as $$ begin raise 'no'; end $$;
		create function public."a b""c"(event jsonb) returns jsonb language sql as 'select event'`); err != nil {
		t.Fatal(err)
	}

	for function, want := range map[string]string{"echo": `{"a": 1}`, "plain": `{"a":1}`, "nothing": "",
		`a b"c`: `{"a": 1}`} {
		got, err := hook.CallFunction(t.Context(), owner, "pg-functions://postgres/public/"+function, []byte(`{"a":1}`))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", function, got, err, want)
		}
	}

	for function, want := range map[string]string{"fails": "P0001", "unknown": "42883"} {
		_, err := hook.CallFunction(t.Context(), owner, "pg-functions://postgres/public/"+function, []byte("{}"))
		if got := pg.State(err); got != want {
			t.Errorf("%s: got %v, want %s", function, err, want)
		}
	}

	// PostgreSQL cuts the reply where it is too long for ParseReply.
	got, err := hook.CallFunction(t.Context(), owner, "pg-functions://postgres/public/huge", []byte("{}"))
	if n := strings.Count(string(got), "é"); err != nil || n != 64<<10 {
		t.Errorf("got %d characters, %v", n, err)
	}
	if _, err := hook.ParseReply(got); err == nil {
		t.Error("the reply is accepted")
	}
}
