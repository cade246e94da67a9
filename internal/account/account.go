// Package account owns the install's users: their passwords, second factors, sessions, personal
// access tokens and mailed links, and the organizations with their members, roles and invitations.
//
// Each entity has one file with its rules and its SQL. The rules that need no table are in packages
// password and token, counting attempts is in package ratelimit. Projects belong to package
// platform, as do the tables' migrations.
package account

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/ratelimit"
	"github.com/socle-dev/socle/internal/token"
)

// Config has the dependencies and settings of a [Service].
type Config struct {
	Store      *platform.Store // settings of the install, and the handle on its database
	Passwords  *password.Hasher
	Keyring    *token.Keyring // signs and verifies access tokens until SetKeyring replaces it
	PublicURL  string         // without trailing slash; prefix of links in mails
	SetupToken string         // lets any client create the first user as administrator
	LinkKey    []byte         // derives the tokens of mailed links
	RefreshKey []byte         // derives refresh tokens
	FactorKey  []byte         // derives the keys that seal second factors
	RateLimit  bool

	// Queue sends mails as jobs. nil: for commands, which send none.
	Queue  *queue.Queue
	Sender *mail.Sender
	Log    *slog.Logger
}

// Service runs the operations on accounts, each in a transaction of its own, or all in one. It is
// safe for concurrent use outside a transaction.
type Service struct {
	Config
	Attempts ratelimit.Attempts // rate limits for accounts and forms

	keyring *atomic.Pointer[token.Keyring]

	db *platform.DB
	q  pg.Querier
}

// Client is the origin of a request.
type Client struct {
	Address string
	Network string // network key for rate limits
	Agent   string // User-Agent
	Local   bool   // connected directly from the server's machine
}

// New returns the service on its store's database.
func New(c Config) *Service {
	db := c.Store.DB()
	s := &Service{Config: c, Attempts: ratelimit.New(db.Querier(), "platform.attempts"),
		keyring: new(atomic.Pointer[token.Keyring])}
	s.Attempts.Off = !c.RateLimit
	s.SetKeyring(c.Keyring)

	s = s.In(db)
	if c.Queue != nil {
		s.registerMails()
	}

	return s
}

// In returns the service on another handle, such as a transaction's.
func (s *Service) In(db *platform.DB) *Service {
	c := *s
	c.db, c.q = db, db.Querier()
	c.Store, c.Attempts = s.Store.In(db), s.Attempts.In(c.q)

	return &c
}

// SetKeyring replaces the keys that sign and verify access tokens.
func (s *Service) SetKeyring(k *token.Keyring) { s.keyring.Store(k) }

// JWKS returns the public keys that verify access tokens.
func (s *Service) JWKS() []byte { return s.keyring.Load().JWKS() }

// Sweep deletes expired attempts, links, tokens and invitations.
func (s *Service) Sweep(ctx context.Context) error {
	return errors.Join(s.Attempts.DeleteExpired(ctx), s.deleteExpiredLinks(ctx), s.deleteExpiredTokens(ctx),
		s.deleteExpiredInvitations(ctx))
}

// inTx runs f in a transaction that ends with an entry in the audit log, see [platform.DB.InTx].
func (s *Service) inTx(ctx context.Context, f func(tx *Service) error) error {
	return s.db.InTx(ctx, func(tx *platform.DB) error { return f(s.In(tx)) })
}

// fold returns a name or an address in canonical form, for case-insensitive and confusion-safe
// comparison and for counting attempts: trimmed, NFKC-normalized and case-folded.
func fold(s string) string {
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(strings.TrimSpace(s))))
}

// foldEmail folds an address's canonical form. Mailboxes that differ in case beyond ASCII count as
// one here: platform accounts are strict about look-alikes.
func foldEmail(s string) string { return fold(address.Canonical(s)) }

// mapped applies f to an optional text.
func mapped(s *string, f func(string) string) *string {
	if s == nil {
		return nil
	}

	text := f(*s)
	return &text
}

// errSessionEnded reports that a request's session has ended meanwhile.
func errSessionEnded() error {
	return fault.New(fault.Unauthenticated, "the session has ended").WithCode("invalid_token")
}
