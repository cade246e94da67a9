package account

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/argon2"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/token"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// install is a service on a new database, with the statements that it ran. Its queue keeps jobs and
// runs none.
type install struct {
	*Service
	t          testing.TB
	statements []string
}

// secret is the password of all users of the tests.
const secret = "correct horse battery"

func newInstall(t *testing.T) *install {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		if err := platform.Migrate(ctx, conn); err != nil {
			return err
		}

		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()

		return queue.Migrate(ctx, pool)
	})
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}

	i := &install{t: t}
	config.ConnConfig.Tracer = i
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	key, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}

	jobs, err := queue.New(queue.Config{Pool: pool, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	i.Service = New(Config{
		Store: platform.New(pool), Passwords: password.New(8), Keyring: token.NewKeyring(key),
		PublicURL: "https://socle.test", SetupToken: "set up", RateLimit: true,
		LinkKey: []byte("links"), RefreshKey: []byte("refresh"), FactorKey: []byte("factors"),
		Queue: jobs,
	})

	return i
}

// TraceQueryStart records a statement. The tests of statements run one at a time per install.
func (i *install) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	i.statements = append(i.statements, q.SQL)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (i *install) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// statementsOf returns the statements that f runs.
func (i *install) statementsOf(f func()) []string {
	i.statements = nil
	f()

	return i.statements
}

// user creates a user with the password secret.
func (i *install) user(name string) User {
	i.t.Helper()

	user, err := i.CreateUser(i.t.Context(), NewUser{
		Username: name, Email: name + "@example.com", PasswordHash: cheapHash(),
	})
	if err != nil {
		i.t.Fatal(err)
	}

	return user
}

// login opens a session for a user.
func (i *install) login(u User) SignedIn {
	i.t.Helper()

	in, err := i.Login(i.t.Context(), at("home"), Credentials{Email: u.Email, Password: secret})
	if err != nil {
		i.t.Fatal(err)
	}

	return in
}

// caller returns the caller with an access token, without a scope.
func (i *install) caller(in SignedIn) Caller { return i.in(in, Scope{}) }

// in is [install.caller] with a scope.
func (i *install) in(in SignedIn, scope Scope) Caller {
	i.t.Helper()

	c, err := i.Authenticate(i.t.Context(), in.Tokens.Token, scope)
	if err != nil {
		i.t.Fatal(err)
	}

	return c
}

// actor returns a user as a caller in a session without tokens.
func actor(u User) Caller { return Caller{User: u.UUID, Ceiling: Administrator} }

// join makes a user a member of an organization.
func (i *install) join(organization uuid.UUID, u User, role Role) {
	i.t.Helper()

	if err := i.addMember(i.t.Context(), organization, u.UUID, role); err != nil {
		i.t.Fatal(err)
	}
}

func (i *install) exec(sql string, args ...any) int64 {
	i.t.Helper()

	n, err := pg.Exec(i.t.Context(), i.q, sql, args...)
	if err != nil {
		i.t.Fatal(err)
	}

	return n
}

// project creates the row of an active project.
func (i *install) project(organization uuid.UUID, name string) uuid.UUID {
	i.t.Helper()

	id := uuid.New()
	i.exec(`insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
		values ($1, $2, $3, 'active', $1, $1)`, id, organization, name)

	return id
}

// takeMail returns the only mail since the last call.
func (i *install) takeMail() Mail {
	i.t.Helper()

	mails := takeJobs[Mail](i)
	if len(mails) != 1 {
		i.t.Fatalf("got mails %v, want one", mails)
	}

	return mails[0]
}

// takeJobs removes the jobs of a kind from the queue and returns them.
func takeJobs[T interface{ Kind() string }](i *install) []T {
	i.t.Helper()

	var kind T
	jobs, err := pg.Values[T](i.t.Context(), i.q, `
		with taken as (delete from river.river_job where kind = $1 returning id, args)
		select args from taken order by id`, kind.Kind())
	if err != nil {
		i.t.Fatal(err)
	}

	return jobs
}

// linkToken returns the token of the link in a mail.
func (i *install) linkToken(m Mail, purpose string) string {
	return token.Link(i.LinkKey, purpose, m.Link.UUID)
}

// at returns a client in a network.
func at(network string) Client {
	return Client{Address: "203.0.113.1", Network: network, Agent: "test"}
}

// want checks the kind and the code of an error. The code "" stands for success.
func want(t *testing.T, err error, kind fault.Kind, code string) {
	t.Helper()

	if code == "" && err == nil {
		return
	}
	if code == "" || !fault.Is(err, kind) || fault.Of(err).CodeWord() != code {
		t.Errorf("got %v, want an error of kind %v with code %q", err, kind, code)
	}
}

// cheapHash returns a hash of secret with the minimum parameters of argon2id. A real one takes 50
// ms by design.
var cheapHash = sync.OnceValue(func() string {
	salt := []byte(rand.Text()[:16])
	encoded := base64.RawStdEncoding.EncodeToString
	key := argon2.IDKey([]byte(secret), salt, 1, 8, 1, 32)

	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, encoded(salt), encoded(key))
})
