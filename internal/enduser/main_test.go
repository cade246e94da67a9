package enduser

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/bcrypt"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/leaked"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/ratelimit"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// secret is the password of the users of the tests.
const secret = "correct horse"

// secretHash returns the hash of [secret] by bcrypt with the least cost. One of our own takes 50 ms
// by design.
var secretHash = sync.OnceValue(func() string {
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
	if err != nil {
		panic(err)
	}

	return string(hash)
})

// platformDB is the platform database of all tests of the binary.
var platformDB = sync.OnceValues(func() (*pgxpool.Pool, error) {
	ctx := context.Background()
	url, err := pgtest.Keep(ctx, "platform", func(ctx context.Context, url string) error {
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
	if err != nil {
		return nil, err
	}

	return pgxpool.New(ctx, url)
})

// users is the directory of a project on a database of its own. Its service counts no attempts, and
// its queue keeps jobs and runs none.
type users struct {
	*Directory
	t testing.TB
}

// newUsers returns the users of a new project. They need no confirmation of addresses.
func newUsers(t testing.TB, change func(*rules.Config)) *users {
	t.Helper()
	return newUsersOf(t, newService(t), change)
}

// newLimitedUsers is [newUsers] of a service that counts attempts.
func newLimitedUsers(t testing.TB, change func(*rules.Config)) *users {
	t.Helper()

	s := newService(t)
	s.Attempts.Off = false

	return newUsersOf(t, s, change)
}

func newService(t testing.TB) *Service {
	t.Helper()

	pool, err := platformDB()
	if err != nil {
		t.Fatal(err)
	}

	log := slog.New(slog.DiscardHandler)
	jobs, err := queue.New(queue.Config{Pool: pool, Log: log})
	if err != nil {
		t.Fatal(err)
	}

	sender, err := mail.New("", "", log)
	if err != nil {
		t.Fatal(err)
	}

	attempts := ratelimit.New(pool, "platform.attempts")
	attempts.Off = true
	client := outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})

	return New(Config{Store: platform.New(pool), Projects: projectdbtest.Registry(t), Passwords: password.New(8),
		Queue: jobs, Providers: idp.New(client), Outbound: client, HookCalls: hook.NewClient(client),
		Leaked: leaked.New(t.TempDir()), Sender: sender, Attempts: attempts, PublicURL: "https://socle.test", Log: log})
}

func newUsersOf(t testing.TB, s *Service, change func(*rules.Config)) *users {
	t.Helper()

	project := projectdbtest.New(t).UUID
	owner, organization := uuid.New(), uuid.New()
	for _, sql := range []string{
		`insert into platform.organizations (uuid, name) values (@organization, 'tests')`,
		`insert into platform.users (uuid, username, username_folded, email, email_folded, password_hash, organization_uuid)
			values (@owner, @name, @name, @name, @name, '', @organization)`,
		`insert into platform.members (organization_uuid, user_uuid, role) values (@organization, @owner, 2)`,
		`insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
			values (@project, @organization, @name, 'active', @owner, @owner)`,
	} {
		if _, err := s.Store.DB().Querier().Exec(t.Context(), sql, pgx.NamedArgs{"organization": organization,
			"owner": owner, "project": project, "name": owner.String()}); err != nil {
			t.Fatal(err)
		}
	}

	_, err := s.UpdateConfig(t.Context(), project, owner, func(c *rules.Config) {
		c.ConfirmEmail, c.MailIntervalSeconds = false, 0
		if change != nil {
			change(c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	d, err := s.Open(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}

	return &users{d, t}
}

// from returns a client in a network.
func from(address string) Client {
	return Client{Address: netip.MustParseAddr(address), Network: address, Agent: "test"}
}

// home is a client of the tests.
var home = from("203.0.113.1")

// user creates a user with a confirmed address and the password [secret].
func (u *users) user(email string) User {
	u.t.Helper()

	yes, hash := true, secretHash()
	in := AdminUpdate{Email: &email, PasswordHash: &hash, EmailConfirm: &yes}
	created, err := u.CreateUser(u.t.Context(), in, home)
	if err != nil {
		u.t.Fatal(err)
	}

	return created
}

// session opens a session of a user, without the cost of a password.
func (u *users) session(user User) Session {
	u.t.Helper()

	s, err := u.signIn(u.t.Context(), "test", func(ctx context.Context, tx pgx.Tx) (unsignedSession, error) {
		return u.openSession(ctx, tx, user.ID, "password", home)
	})
	if err != nil {
		u.t.Fatal(err)
	}

	return s
}

// identity returns the signed-in user of a session.
func (s Session) identity() Identity { return Identity{User: s.User.ID, Session: s.id} }

// exec runs SQL on the rows of schema auth.
func (u *users) exec(sql string, args ...any) {
	u.t.Helper()

	if _, err := u.db.EndUsers().Exec(u.t.Context(), sql, args...); err != nil {
		u.t.Fatalf("%s: %v", sql, err)
	}
}

// count returns the number that a query selects.
func (u *users) count(sql string, args ...any) int {
	u.t.Helper()

	n, err := pg.Value[int](u.t.Context(), u.Rows(), sql, args...)
	if err != nil {
		u.t.Fatalf("%s: %v", sql, err)
	}

	return n
}

// takeJobs removes the jobs of the project from the queue and returns them.
func takeJobs[T interface{ Kind() string }](u *users) []T {
	u.t.Helper()

	var kind T
	jobs, err := pg.Values[T](u.t.Context(), u.service.Store.DB().Querier(), `
		with jobs as (
			delete from river.river_job where kind = $1 and args ->> 'project' = $2 returning id, args)
		select args from jobs order by id`, kind.Kind(), u.UUID.String())
	if err != nil {
		u.t.Fatal(err)
	}

	return jobs
}

// mail returns the job of the only mail since the last call, whose token exists.
func (u *users) mail(kind string) mailArgs {
	u.t.Helper()

	jobs := takeJobs[mailArgs](u)
	if len(jobs) != 1 || jobs[0].MailKind != kind {
		u.t.Fatalf("got the mails %+v, want one of kind %s", jobs, kind)
	}
	if jobs[0].Token.Valid {
		return jobs[0]
	}

	t, _, err := u.mailToken(u.t.Context(), jobs[0])
	if err != nil {
		u.t.Fatal(err)
	}
	jobs[0].Token = someUUID(t.ID)

	return jobs[0]
}

// sms returns the code of the only text message since the last call.
func (u *users) sms(phone string) string {
	u.t.Helper()

	jobs := takeJobs[smsArgs](u)
	if len(jobs) != 1 || jobs[0].Phone != phone {
		u.t.Fatalf("got the messages %+v, want one to %s", jobs, phone)
	}

	m, err := u.composeSMS(u.t.Context(), jobs[0])
	if err != nil {
		u.t.Fatal(err)
	}

	return m.Code
}

// code returns the six digits of a mail, and link the token of its link.
func (u *users) code(m mailArgs) string { return u.keys.code(m.Token.UUID) }
func (u *users) link(m mailArgs) string { return u.keys.link(m.Token.UUID) }

// verifyCode confirms an address by a code, and verifyLink by a link.
func (u *users) verifyCode(kind, email, code string) (Verified, error) {
	return u.Verify(u.t.Context(), Verification{Type: kind, Email: email, Code: code}, false, home)
}

func (u *users) verifyLink(kind, link string) (Verified, error) {
	return u.Verify(u.t.Context(), Verification{Type: kind, Hash: link}, false, home)
}

// wrongCode returns six digits that are not the code.
func wrongCode(code string) string {
	if code == "000000" {
		return "111111"
	}
	return "000000"
}

// want checks the kind and the code of an error. The code "" stands for success.
func want(t testing.TB, err error, kind fault.Kind, code string) {
	t.Helper()

	if code == "" && err == nil {
		return
	}
	if code == "" || !fault.Is(err, kind) || fault.Of(err).Code != code {
		t.Errorf("got %v, want an error of kind %v with the code %q", describe(err), kind, code)
	}
}

// codeOf returns the code of an error, "" for none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}

// describe returns an error with its kind and code.
func describe(err error) string {
	if err == nil {
		return "no error"
	}
	return fmt.Sprintf("%v (kind %v, code %s)", err, fault.Of(err).Kind, fault.Of(err).Code)
}

// ok fails the test on an error.
func ok(t testing.TB, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(describe(err))
	}
}
