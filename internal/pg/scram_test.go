package pg_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

// TestVerifier checks that a login with a verifier accepts its password and no other.
func TestVerifier(t *testing.T) {
	t.Parallel()

	c, err := pgx.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}

	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())

	key, name := rand.Text(), "verified_"+strings.ToLower(rand.Text())
	if _, err := conn.Exec(t.Context(),
		"create role "+name+" login password "+pg.Literal(pg.SCRAMVerifier(key))); err != nil {
		t.Fatal(err)
	}
	defer conn.Exec(t.Context(), "drop role "+name)

	for password, state := range map[string]string{key: "", key + "x": "28P01", "": "28P01"} {
		c := c.Copy()
		c.User, c.Password = name, password
		login, err := pgx.ConnectConfig(t.Context(), c)
		if pg.State(err) != state || (err == nil) != (state == "") {
			t.Errorf("password %q: %v, want state %q", password, err, state)
		}

		if err == nil {
			login.Close(t.Context())
		}
	}
}
