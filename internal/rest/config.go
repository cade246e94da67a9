package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/session"
)

// Config configures a Server.
type Config struct {
	Catalog  *Cache
	Auth     Auth
	Limits   Limits
	Features Features
	OpenAPI  OpenAPI
	Hooks    Hooks
	Replicas *Replicas      // nil: none
	Session  session.Config // work in the database

	Schemas    []string     // exposed schemas; the first is the default
	SearchPath []string     // schemas that follow the exposed one in search_path
	PreRequest catalog.Name // function called before every statement; zero means none
	RootSpec   catalog.Name // function that answers requests for the root; zero means none
	Settings   map[string]string
	// GrantHint returns the hint for a role that lacks a privilege, from PostgreSQL's message, or
	// "". nil means no hints.
	GrantHint func(role, message string) string
	Origins   []string // allowed by CORS; nil means all
}

// Auth determines the role of a request.
type Auth struct {
	// Role returns the pool and settings of a role. It reports false if callers cannot have the
	// role.
	Role func(role string) (Role, bool)
	// Verify returns the caller of a request with a token. It fails with a *query.Error or a
	// *fault.Error. nil means that tokens are not supported.
	Verify    func(r *http.Request, token string) (Caller, error)
	APIKeys   bool   // accept a token in the header apikey if Authorization has none
	Anonymous string // role of requests without a token; "" refuses them
}

// Limits bound a request. session.Config has those of its work in the database.
type Limits struct {
	MaxRows *int64        // rows of a response; nil means any
	Timeout time.Duration // limit for a request in the database; 0 means 30 s
	MaxBody int64         // bytes of a request body; 0 means 10 MiB
	Bodies  *fair.Pool    // bytes of bodies; nil means 256 MiB for this server alone
	// Owner returns the key that bodies and long responses are charged to. nil means the client's
	// network.
	Owner func(context.Context) fair.Key
}

// Features are optional behaviors of PostgREST, off by default.
type Features struct {
	Rollback     bool // roll back every transaction
	TxOverride   bool // let Prefer: tx= override Rollback
	Aggregates   bool // allow aggregate functions in select
	AliasesOnly  bool // an embedded relation with an alias is known by its alias only
	Plan         bool // allow clients to request the execution plan
	ServerTiming bool
	TerseErrors  bool // error bodies have only code and message
	SharedOrigin bool // with other projects' user code, see shared_origin.go
	LogSQL       bool // record the statement of each request in its httpx.Request
	// Transactions turns on Idempotency-Key and batches, for a database with Socle's functions.
	Transactions bool
}

// OpenAPI configures the description of the schema.
type OpenAPI struct {
	Mode     string // "follow-privileges" (also ""), "ignore-privileges" or "disabled"
	Server   string // server URL in the description; "" means that of the request
	Security bool   // declare JWT security
	// Credentials goes on in the description of the JWT security, with which tokens it takes; ""
	// means nothing.
	Credentials string
}

// Hooks ask for the state of the database.
type Hooks struct {
	// Unavailable maps a lost connection to a specific error, such as "project paused". It returns
	// nil to keep the original error. nil means that there is no such error.
	Unavailable func(ctx context.Context) error
	// Quota reports whether the database exceeds its quota, and then, whether it has grown further
	// through user code in deletes or functions. Over its quota only reads and deletes are allowed;
	// far over, deletes and volatile functions are refused too. nil means no quota.
	Quota func() (over, far bool)
	// Written is called after a request that may have changed rows. nil means nothing to do.
	Written func()
}

// Role has the pool and settings for requests of a role.
type Role struct {
	Pool *pgxpool.Pool
	// SearchPath is the search_path that the pool's connections start with. Requests with the same
	// search_path need not set it. "" means unknown.
	SearchPath string
	Settings   map[string]string // set for each transaction, such as statement_timeout
	// Anonymous marks the role of anonymous requests: a lack of privileges is 401, since a token
	// could help.
	Anonymous bool
}
