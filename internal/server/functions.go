package server

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/functionapi"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/projectdb"
)

// functionKeyTTL is the lifetime of the keys in a function's environment: that of its process, and
// some more.
const functionKeyTTL = 3 * time.Hour

// newFunctions returns the service that runs edge functions.
func (s *Server) newFunctions(c config.Config, out *outbound.Client) *function.Service {
	return function.New(function.Config{Program: findDeno(c), Processes: c.FunctionProcesses, Outbound: out, Log: s.log,
		Self:        function.Self{URL: s.URL, Connect: s.inside.connect, ServeDatabase: s.serveDatabase},
		Environment: s.functionEnvironment})
}

// findDeno returns the path of Deno, or "".
func findDeno(c config.Config) string {
	if c.DenoBin != "" {
		return runtime.Find(c.DenoBin)
	}

	beside := ""
	if program, err := os.Executable(); err == nil {
		beside = filepath.Join(filepath.Dir(program), "deno")
	}

	return runtime.Find(filepath.Join(c.DataDir, "deno"), beside, "/usr/lib/socle/deno")
}

// CheckFunctions starts a function as the server would. It fails with the reason why the server
// runs none.
func CheckFunctions(ctx context.Context, c config.Config) error {
	p, err := runtime.Start(ctx, runtime.Config{Program: findDeno(c), MemoryMB: runtime.DefaultMemoryMB,
		Outward: http.NotFoundHandler(), Log: func(runtime.Line) {}})
	if err != nil {
		return err
	}
	defer p.Close()

	return p.Load(ctx, runtime.Module{Code: []byte("Deno.serve(() => new Response());")})
}

// serveDatabase serves a function's PostgreSQL client.
func (s *Server) serveDatabase(conn net.Conn, project uuid.UUID, name string) {
	lease, err := s.proxy.Admit(context.Background(), project)
	if err != nil {
		_ = conn.Close()
		return
	}

	s.proxy.ServeAuthenticated(conn, pgproxy.Client{Project: project,
		Entry: audit.Entry{Target: "/projects/" + project.String() + functionapi.Prefix + "/" + name},
		Check: func(context.Context) error { return nil }, // the process ends with its right
	}, lease)
}

// functionEnvironment returns the variables of a project's functions that Supabase has, too.
func (s *Server) functionEnvironment(ctx context.Context, p *projectdb.Project) (map[string]string, error) {
	jwks, err := s.functionJWKS(ctx, p.UUID)
	if err != nil {
		return nil, err
	}

	env := map[string]string{"SUPABASE_URL": s.URL + "/projects/" + p.UUID.String(),
		"SUPABASE_DB_URL": function.DatabaseURL, "SUPABASE_JWKS": jwks, "SB_REGION": "local"}
	roles := map[string]string{"SUPABASE_ANON_KEY": "anon", "SUPABASE_SERVICE_ROLE_KEY": "service_role"}
	for name, role := range roles {
		key, err := jwt.SignRole([]byte(s.registry.JWTSecret(p.UUID)), role, time.Now().Add(functionKeyTTL))
		if err != nil {
			return nil, err
		}

		env[name] = key
	}

	return env, nil
}

// functionJWKS returns the public keys of a project's tokens, as a JSON Web Key Set.
func (s *Server) functionJWKS(ctx context.Context, project uuid.UUID) (string, error) {
	p, err := s.gateway.Refresh(ctx, project)
	if err != nil {
		return "", err
	}

	keys, err := s.services.EndUsers.PublicKeys(project, p.Settings.EndUsers.KeyGeneration)
	if err != nil {
		return "", err
	}

	text, err := json.Marshal(map[string]any{"keys": append([]json.RawMessage{}, keys...)})
	return string(text), err
}
