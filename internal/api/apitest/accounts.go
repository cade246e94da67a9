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

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/argon2"

	"socle/internal/server"
)

// secretKey is that of every test's server: what the template database holds is sealed with it.
var secretKey = rand.Text() + rand.Text()

// account is a user of the template database who is signed in.
type account struct{ token, user, email, organization string }

// accounts are filled with the template. To hash a password takes long, by design: so the users that most tests need are signed
// up once.
var accounts []account

const howMany = 16

// fillPlatform makes an empty database that of a server before its first user.
func fillPlatform(ctx context.Context, url string) error {
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

// fillUsers makes an empty database that of a server with users.
func fillUsers(ctx context.Context, url string) error {
	dir, err := os.MkdirTemp("", "socle-apitest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	c, err := settings(url, dir)
	if err != nil {
		return err
	}

	s, err := server.Start(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()

	for i := range howMany {
		a, err := signUp(s.URL, fmt.Sprintf("account-%d", i+1))
		if err != nil {
			stop()
			<-stopped

			return err
		}

		accounts = append(accounts, a)
	}

	stop()
	return errors.Join(<-stopped, cheapen(ctx, url))
}

// cheapen gives the users a hash of their password that is checked in no time. What it costs to guess one is for package password to test.
func cheapen(ctx context.Context, url string) error {
	conn, err := pgx.Connect(context.WithoutCancel(ctx), url)
	if err != nil {
		return err
	}

	salt := []byte(rand.Text()[:16])
	encoded := base64.RawStdEncoding.EncodeToString
	hash := fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, encoded(salt),
		encoded(argon2.IDKey([]byte(Password), salt, 1, 8, 1, 32)))

	_, err = conn.Exec(context.WithoutCancel(ctx), `update platform.users set password_hash = $1`, hash)

	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

func signUp(url, name string) (account, error) {
	body := fmt.Sprintf(`{"username": %q, "email": %q, "password": %q}`, name, name+"@example.com", Password)
	res, err := client.Post(url+"/users", "application/json", strings.NewReader(body))
	if err != nil {
		return account{}, err
	}
	defer res.Body.Close()

	var reply struct {
		Content struct {
			UUID, Email, OrganizationUUID string
		}
		Metadata struct{ Token string }
	}
	if err := json.NewDecoder(res.Body).Decode(&reply); err != nil {
		return account{}, err
	}

	if res.StatusCode != http.StatusCreated {
		return account{}, fmt.Errorf("sign-up: status %d", res.StatusCode)
	}

	return account{reply.Metadata.Token, reply.Content.UUID, reply.Content.Email, reply.Content.OrganizationUUID}, nil
}

// prepared are the accounts that a test has not taken yet.
type prepared struct {
	mu   sync.Mutex
	left []account
}

func (p *prepared) take() (account, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.left) == 0 {
		return account{}, false
	}

	taken := p.left[0]
	p.left = p.left[1:]

	return taken, true
}
