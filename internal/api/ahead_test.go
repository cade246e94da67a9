package api_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"socle/internal/api/apitest"
)

// TestDownloadLooksAhead: the file is looked for while the caller's right still is, and tells nothing before that is known.
func TestDownloadLooksAhead(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
	c := a.Create("/containers", `{"name": "reports"}`)
	of := "/containers/" + c + "/files/"
	file := of + upload(a, c, "a.txt", "hello").Want(201).Get("uuid").(string) + "/download"
	unknown := of + apitest.Missing + "/download"
	member, stranger := a.Member(5), a.Stranger()
	member.Get(file).Want(200)
	refused := stranger.Get(unknown).Want(401)
	same := func(t *testing.T, r *apitest.Reply) {
		t.Helper()
		got, want := slices.Sorted(maps.Keys(r.Want(401).Header)), slices.Sorted(maps.Keys(refused.Header))
		if !slices.Equal(got, want) || len(r.Body) != len(refused.Body) {
			t.Errorf("got %v and %s, want what is said of an unknown file: %v and %s", got, r.Body, want, refused.Body)
		}
	}
	same(t, stranger.Get(file))

	t.Run("a stranger does not wait for it", func(t *testing.T) {
		files := lock(t, a.ProjectDatabase(), "storage.files")
		same(t, stranger.Get(file))
		release(t, files)
	})
	t.Run("a member who is removed meanwhile gets nothing of it", func(t *testing.T) {
		platform, err := pgx.Connect(t.Context(), string(a.Config.DatabaseURL))
		if err != nil {
			t.Fatal(err)
		}
		defer platform.Close(t.Context())
		files, members := lock(t, a.ProjectDatabase(), "storage.files"), lock(t, platform, "platform.members")
		answered := make(chan *apitest.Reply, 1)
		go func() { answered <- member.Get(file) }()
		const waiting = "select count(*)::int from pg_locks where relation = $1::text::regclass and not granted"
		until(t, "both are asked for", func() bool {
			return query[int](t, a, waiting, "storage.files") == 1 && apitest.Value[int](a, waiting, "platform.members") == 1
		})
		release(t, files)
		until(t, "the file is found", func() bool {
			return query[int](t, a, waiting, "storage.files") == 0 && apitest.Value[int](a, waiting, "platform.members") == 1
		})
		select {
		case r := <-answered:
			t.Errorf("got %d before the right was known", r.Status)
		default:
		}
		if _, err := members.Exec(t.Context(), "delete from platform.members where role = 5"); err != nil {
			t.Fatal(err)
		}
		if err := members.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, <-answered)
	})
}

// lock begins a transaction that nobody reads a table beside.
func lock(t *testing.T, conn *pgx.Conn, table string) pgx.Tx {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "lock table "+table+" in access exclusive mode")
	}
	if err != nil {
		t.Fatal(err)
	}
	return tx
}
