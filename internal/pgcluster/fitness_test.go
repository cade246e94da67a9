package pgcluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestCheckFitness refuses each address that Socle can't work with, in a sentence.
func TestCheckFitness(t *testing.T) {
	t.Parallel()

	pool, err := pg.PrimaryPoolConfig(pgtest.URL(t), 1)
	if err != nil {
		t.Fatal(err)
	}

	admin := pgConnect(t, pgtest.URL(t))
	plain := pool.ConnConfig.Copy()
	other := otherLogin(t, admin, "plain")
	plain.User, plain.Password = other.User, other.Password

	readOnly := pool.ConnConfig.Copy()
	readOnly.RuntimeParams["default_transaction_read_only"] = "on"
	readOnly.ValidateConnect = nil

	// As a pooler that ignores start-up parameters.
	ignored := pool.ConnConfig.Copy()
	ignored.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, `set search_path = "$user", public`).Close()
	}

	for name, test := range map[string]struct {
		config *pgx.ConnConfig
		want   string
	}{
		"as it should be": {pool.ConnConfig, ""}, "without rights": {plain, "is no superuser"},
		"read-only": {readOnly, "use the primary"}, "ignored parameters": {ignored, "pooler"},
	} {
		err := CheckFitness(t.Context(), test.config)
		if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestCheckOwnSession finds a connection whose backend changes, or is that of another connection.
func TestCheckOwnSession(t *testing.T) {
	t.Parallel()

	config, err := pgx.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}

	first := pgtest.Connect(t, config)
	pid := int64(first.PgConn().PID())
	if err := checkOwnSession(t.Context(), config, first, pid); err != nil {
		t.Errorf("a session of its own: got %v", err)
	}
	if err := checkOwnSession(t.Context(), config, first, pid+1); !errors.Is(err, errPooler) {
		t.Errorf("another backend: got %v", err)
	}
}
