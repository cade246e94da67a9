package apitest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/argon2"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/server"
)

// secretKey is every test server's secret key. The secrets in the template database are encrypted
// with it.
var secretKey = rand.Text() + rand.Text()

// userSession is a signed-in user.
type userSession struct{ token, user, email, organization string }

// accounts are the users in the template database.
var accounts []userSession

// templateAccounts is the number of users in the template database. Nearly every test needs fewer.
const templateAccounts = 16

// clone is [pgtest.Clone] on a PostgreSQL that has the template of projects.
func clone(t testing.TB, template string, fill func(ctx context.Context, url string) error) string {
	t.Helper()

	if err := projectdbtest.Seed(); err != nil {
		t.Fatal(err)
	}

	return pgtest.Clone(t, template, fill)
}

// migratePlatform migrates an empty database. It has no users.
func migratePlatform(ctx context.Context, url string) error {
	dir, err := os.MkdirTemp("", "socle-apitest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	c, err := settings(url, dir)
	if err != nil {
		return err
	}

	return server.Migrate(ctx, c, slog.New(slog.DiscardHandler))
}

// createUsers migrates an empty database and creates users in it, each with a session. The first
// user is an administrator.
func createUsers(ctx context.Context, url string) error {
	dir, err := os.MkdirTemp("", "socle-apitest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	c, err := settings(url, dir)
	if err != nil {
		return err
	}

	s, stop, err := run(ctx, c, slog.DiscardHandler)
	if err != nil {
		return err
	}

	for i := range templateAccounts {
		a, err := createAccount(ctx, s, fmt.Sprintf("account-%d", i+1), i == 0)
		if err != nil {
			return errors.Join(err, stop())
		}

		accounts = append(accounts, a)
	}

	return stop()
}

// createAccount creates a user with a session. It bypasses sign-up, because hashing the password
// takes 19 MiB and some 50 ms of CPU by design.
func createAccount(ctx context.Context, s *server.Server, name string, administrator bool) (userSession, error) {
	user, err := s.Services().Accounts.CreateUser(ctx, account.NewUser{Username: name, Email: name + "@example.com",
		PasswordHash: cheapHash(), Claim: administrator})
	if err != nil {
		return userSession{}, err
	}

	body := fmt.Sprintf(`{"email": %q, "password": %q}`, user.Email, Password)
	res, err := client.Post(s.URL+"/users/login", "application/json", strings.NewReader(body))
	if err != nil {
		return userSession{}, err
	}
	defer res.Body.Close()

	var reply struct {
		Content  struct{ UUID, Email, OrganizationUUID string }
		Metadata struct{ Token string }
	}
	if err := json.NewDecoder(res.Body).Decode(&reply); err != nil {
		return userSession{}, err
	}

	if res.StatusCode != http.StatusOK {
		return userSession{}, fmt.Errorf("log in as %s: status %d", name, res.StatusCode)
	}

	created := reply.Content
	return userSession{reply.Metadata.Token, created.UUID, created.Email, created.OrganizationUUID}, nil
}

// cheapHash returns a hash of [Password] with the minimum parameters of argon2id. Package password
// tests the product's parameters.
var cheapHash = sync.OnceValue(func() string {
	salt := []byte(rand.Text()[:16])
	encoded := base64.RawStdEncoding.EncodeToString
	key := argon2.IDKey([]byte(Password), salt, 1, 8, 1, 32)

	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, encoded(salt), encoded(key))
})

// prepared holds the template database's accounts that the test has not used yet. It is nil for a
// database without the template.
type prepared struct {
	mu        sync.Mutex
	remaining []userSession
}

func (p *prepared) take() (userSession, bool) {
	if p == nil {
		return userSession{}, false
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.remaining) == 0 {
		return userSession{}, false
	}

	next := p.remaining[0]
	p.remaining = p.remaining[1:]

	return next, true
}
