package enduser

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/leaked"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// txTimeout bounds a change, in which the project's triggers run.
const txTimeout = 10 * time.Second

// Config has the dependencies for a [Service].
type Config struct {
	Store     *platform.Store
	Projects  *projectdb.Registry
	Passwords *password.Hasher
	Queue     *queue.Queue
	Providers *idp.Client
	Outbound  *outbound.Client  // requests to text message senders and captchas
	HookCalls *outbound.Client  // requests to hooks, see [hook.NewClient]
	Functions *function.Service // that hooks may name; nil: none
	Leaked    *leaked.Passwords
	Sender    *mail.Sender
	Attempts  ratelimit.Attempts // install-wide limits
	PublicURL string             // without trailing slash; prefix for links and issuers
	Log       *slog.Logger
}

// Service opens projects' directories and sends their mails. It is safe for concurrent use.
type Service struct{ Config }

// Directory holds one project's end users under its current settings. It is immutable and safe for
// concurrent use.
type Directory struct {
	rules.Config
	UUID uuid.UUID

	service  *Service
	db       *projectdb.Project
	attempts ratelimit.Attempts
	keys     keys
}

// Directory returns a project's directory with its configuration.
func (s *Service) Directory(project uuid.UUID, c rules.Config) (*Directory, error) {
	db := s.Projects.Open(project)
	keys, err := newKeys(s.Projects, project, c.KeyGeneration)
	if err != nil {
		return nil, err
	}

	d := &Directory{Config: c, UUID: project, service: s, db: db, keys: keys,
		attempts: ratelimit.New(db.EndUserRows(), "auth.attempts")}
	d.attempts.Off = s.Attempts.Off

	return d, nil
}

// Key returns the pool key for a request to the project. Strangers share the project's part by
// their networks.
func (d *Directory) Key(ctx context.Context) fair.Key { return httpx.In(ctx, d.db.Key(ctx)) }

// Client is the origin of a request.
type Client struct {
	Address netip.Addr
	Network string // network key for rate limits
	Agent   string // User-Agent
}

// Issuer returns the issuer in the project's tokens, the base address of its auth interface.
func (d *Directory) Issuer() string {
	return d.service.PublicURL + "/projects/" + d.UUID.String() + "/auth/v1"
}

// Constraints by which users have different addresses and numbers.
const (
	usersEmailKey = "users_email_partial_key"
	usersPhoneKey = "users_phone_key"
)

// Tx runs f in a transaction by the auth login, with a context that bounds its time. change names
// it in a failing trigger's error.
func (d *Directory) Tx(ctx context.Context, change string, f func(ctx context.Context, tx pgx.Tx) error) error {
	bounded, cancel := context.WithTimeout(ctx, txTimeout)
	defer cancel()

	err := d.db.EndUsersTx(bounded, func(tx pgx.Tx) error { return f(bounded, tx) })
	if err == nil || ctx.Err() != nil {
		return err
	}

	if pg.Violates(err, usersEmailKey) {
		return errEmailExists().WithCause(err)
	}
	if pg.Violates(err, usersPhoneKey) {
		return errPhoneExists().WithCause(err)
	}
	if schema, key := pg.Violated(err); schema == "auth" && strings.HasSuffix(key, "_user_id_fkey") {
		return errUserGone().WithCause(err)
	}

	if pg.State(err) != "" || bounded.Err() != nil {
		return errDatabase(change).WithCause(err)
	}

	return err
}

// Rows executes statements on schema auth outside a transaction. They run no user code, so none
// changes auth.users; TestUsersChangeInTransactions checks it.
func (d *Directory) Rows() pg.Querier { return d.db.EndUserRows() }

// newID returns a UUID for a row.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func someUUID(id uuid.UUID) uuid.NullUUID { return uuid.NullUUID{UUID: id, Valid: true} }

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
