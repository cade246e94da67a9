// Package console serves the web console to browsers: its built files, and the session that keeps
// its user signed in. All else that the console does are requests to the public API, with the
// session's access token.
//
// The refresh token is in a cookie that no script can read, and that no other path gets. The access
// token is in the console's memory only. The log-in has the same rules as operation login of the
// platform API: both call package account. The files themselves belong to package console at the
// tree's top.
package console

import (
	"net/http"
	"strings"

	"github.com/socle-dev/socle/console"
	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/operation"
)

// Root is the console's path. All below it belongs to the console.
const Root = "/console"

const (
	sessionPath = Root + "/session"
	refreshPath = Root + "/session/refresh"
	assetsPath  = Root + "/assets/"
)

// Config has the console's dependencies and settings.
type Config struct {
	Accounts  *account.Service
	PublicURL string // without trailing slash
	AuditKey  []byte // keys the audit log's entry hashes
}

// Console serves the console. It is safe for concurrent use.
type Console struct {
	Config
	files       files
	crossOrigin *http.CrossOriginProtection
}

// New returns the console.
func New(c Config) *Console {
	return &Console{Config: c, files: newFiles(console.Files()), crossOrigin: httpx.ProtectCrossOrigin(c.PublicURL)}
}

// Serves reports whether a path belongs to the console.
func Serves(path string) bool { return path == Root || strings.HasPrefix(path, Root+"/") }

// ServeHTTP serves a request below [Root].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	record := httpx.From(r.Context())

	switch path := r.URL.Path; {
	case path == sessionPath && r.Method == http.MethodPost:
		record.Route = "POST " + sessionPath
		c.logIn(w, r)
	case path == sessionPath && r.Method == http.MethodDelete:
		record.Route = "DELETE " + sessionPath
		c.logOut(w, r)
	case path == sessionPath:
		record.Route = sessionPath
		refuseMethod(w, r, "POST, DELETE")
	case path == refreshPath && r.Method == http.MethodPost:
		record.Route = "POST " + refreshPath
		c.refresh(w, r)
	case path == refreshPath:
		record.Route = refreshPath
		refuseMethod(w, r, "POST")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		record.Route = Root + "/{path}"
		refuseMethod(w, r, "GET, HEAD")
	default:
		record.Route = "GET " + Root + "/{path}"
		c.files.serve(w, r)
	}
}

func refuseMethod(w http.ResponseWriter, r *http.Request, methods string) {
	w.Header().Set("Allow", methods)
	operation.RespondFailure(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "the path takes only "+methods)
}
