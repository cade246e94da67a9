package pg_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// longest counts the bytes written and the largest single write.
type longest struct{ all, most int }

func (l *longest) Write(b []byte) (int, error) {
	l.all, l.most = l.all+len(b), max(l.most, len(b))
	return len(b), nil
}

// TestCopyOut streams rows larger than MaxMessage and keeps using the connection.
func TestCopyOut(t *testing.T) {
	t.Parallel()

	conn, err := connect(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	const size = 40 << 20
	for _, sql := range []string{"copy (select repeat('x', 40 << 20)) to stdout", "select repeat('x', 40 << 20)"} {
		var got longest
		err := pg.CopyOut(t.Context(), conn.Conn(), sql, func(row io.Reader) error {
			_, err := io.Copy(&got, row)
			return err
		})
		if err != nil || got.all < size || got.all > size+1 || got.most > 1<<20 {
			t.Errorf("%s: got %d bytes, %d at once, %v", sql, got.all, got.most, err)
		}
	}

	var rows []string
	keep := func(row io.Reader) error {
		text, err := io.ReadAll(row)
		rows = append(rows, string(text))

		return err
	}
	if err := pg.CopyOut(t.Context(), conn.Conn(), "select n::text from generate_series(1, 3) n", keep); err != nil ||
		strings.Join(rows, " ") != "1 2 3" {
		t.Errorf("got %q, %v", rows, err)
	}

	if err := pg.CopyOut(t.Context(), conn.Conn(), "copy (select 1 / (n - 2) from generate_series(1, 3) n) to stdout",
		keep); pg.State(err) != "22012" {
		t.Errorf("failing row: got %v", err)
	}
	if got, err := pg.Value[int](t.Context(), conn, "select 7"); got != 7 || err != nil {
		t.Errorf("next statement: got %d, %v", got, err)
	}
}

// TestCopyOutEnds interrupts CopyOut from either side and checks that the connection is closed.
func TestCopyOutEnds(t *testing.T) {
	t.Parallel()

	pool := connect(t)
	broken := errors.New("the client is gone")
	ctx, leave := context.WithCancel(t.Context())
	for name, test := range map[string]struct {
		add  func(io.Reader) error
		want error
	}{
		"writer": {func(io.Reader) error { return broken }, broken},
		"context": {func(io.Reader) error {
			leave()
			return nil
		}, context.Canceled},
	} {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if err := pg.CopyOut(ctx, conn.Conn(), "copy (select generate_series(1, 100000000)) to stdout",
			test.add); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if !conn.Conn().IsClosed() {
			t.Errorf("%s: the connection is still open", name)
		}

		conn.Release()
		ctx, leave = context.WithCancel(t.Context())
	}

	leave()
}

// TestMaxMessage checks that oversized messages of every kind fail instead of being buffered.
func TestMaxMessage(t *testing.T) {
	t.Parallel()

	pool := connect(t)
	for name, sql := range map[string]string{
		"row":    "select repeat('x', 17 << 20)",
		"error":  "do $$ begin raise exception '%', repeat('x', 17 << 20); end $$",
		"notice": "do $$ begin raise notice '%', repeat('x', 17 << 20); end $$",
	} {
		rows, err := pool.Query(t.Context(), sql)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
		}

		large, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err)
		if f := fault.Of(pg.Fault(err)); !ok || large.MaxExpectedBodyLen != pg.MaxMessage ||
			f.Kind != fault.Unprocessable || f.CodeWord() != "too_large" {
			t.Errorf("%s: got %v", name, err)
		}
	}

	if got, err := pg.Value[int](t.Context(), pool, "select 7"); got != 7 || err != nil {
		t.Errorf("next statement: got %d, %v", got, err)
	}
}
