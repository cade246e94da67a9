package function

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	maxProcesses  = 64 // all projects together, by default
	maxBlank      = 2  // processes that wait for a function
	processWait   = 10 * time.Second
	bootTimeout   = 10 * time.Second
	checkInterval = 100 * time.Millisecond
	flushInterval = time.Second

	// stateTTL is the time after which a deployment on another server is noticed.
	stateTTL = time.Second
	// bootErrorTTL is the time for which a function that does not load is not tried again.
	bootErrorTTL = 2 * time.Second
)

// Failures of [Service.Acquire] and [Call.RoundTrip], beside a *runtime.BootError.
var (
	ErrBusy     = errors.New("no process is free for the function")
	ErrNoAnswer = errors.New("the process of the function ended, or its answer is none")
)

// UnavailableError reports that the server can't run functions, with the reason for the operator.
type UnavailableError struct{ Cause error }

func (e *UnavailableError) Error() string { return "functions are unavailable: " + e.Cause.Error() }
func (e *UnavailableError) Unwrap() error { return e.Cause }

// Config has a [Service]'s dependencies.
type Config struct {
	Program   string // path of Deno; "": not installed
	Processes int    // at a time, with the default memory each; 0: a default
	Outbound  *outbound.Client
	// Environment returns the variables of a project that the server sets.
	Environment func(ctx context.Context, p *projectdb.Project) (map[string]string, error)
	Self        Self
	Log         *slog.Logger
}

// Service runs the functions of all projects. It is safe for concurrent use.
type Service struct {
	Config
	places      *fair.Pool // processes
	connections *fair.Pool // outward, see outward.go
	rates       rates
	codeCaches  *codeCaches
	logs        logs
	tallies     tallies

	stopping context.Context // ends processes that start
	stop     context.CancelFunc
	open     sync.WaitGroup // goroutines of workers

	mu      sync.Mutex
	states  map[key]cachedState
	current map[key]*worker      // new requests go to these
	all     map[*worker]struct{} // with a process, or about to have one
	blank   []*blank
	closed  bool
}

// key identifies a function.
type key struct {
	project uuid.UUID
	name    string
}

// state is what a worker was started for.
type state struct {
	VerifyJWT bool `db:"verify_jwt"`
	Version   string
	Secrets   int64 // changes with any secret
	Limits
}

type cachedState struct {
	state
	err error
	at  time.Time
}

// New returns a service without processes.
func New(c Config) *Service {
	stopping, stop := context.WithCancel(context.Background())
	processes := int64(cmp.Or(c.Processes, maxProcesses))
	return &Service{Config: c, stopping: stopping, stop: stop,
		places: fair.New(fair.Config{Name: "function_processes", Capacity: processes, PerAccount: processes / 2,
			PerPart: processes / 4, Reserve: processes / 8, Waiting: 256, Timeout: processWait, Revocable: true}),
		connections: fair.New(fair.Config{Name: "function_connections", Capacity: maxConnections,
			PerAccount: maxConnections / 2, PerPart: maxConnections / 8, Reserve: maxConnections / 8}),
		codeCaches: newCodeCaches(), states: map[key]cachedState{}, current: map[key]*worker{},
		all: map[*worker]struct{}{}}
}

// Pools returns the pools that accounts share, for metrics.
func (s *Service) Pools() []*fair.Pool { return []*fair.Pool{s.places, s.connections} }

// Run watches the limits of processes and writes logs until ctx ends. Then it ends all processes.
func (s *Service) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() {
		for now := range tick.Every(ctx, checkInterval) {
			s.check(now)
		}
	})
	loops.Go(func() {
		for range tick.Every(ctx, flushInterval) {
			s.logs.flush(ctx, s.Log)
		}
	})

	loops.Go(func() {
		for range tick.Every(ctx, tallyInterval) {
			s.tallies.flush(ctx, s.Log)
		}
	})

	loops.Wait()
	s.close()
	s.logs.flush(context.WithoutCancel(ctx), s.Log)
	s.tallies.flush(context.WithoutCancel(ctx), s.Log)

	return nil
}

// close ends all processes and waits for their end.
func (s *Service) close() {
	s.mu.Lock()
	s.closed = true
	s.stop()
	for w := range s.all {
		w.killLocked("shutdown")
	}
	blank := s.blank
	s.blank = nil
	s.mu.Unlock()

	for _, b := range blank {
		b.process.Close()
	}

	s.open.Wait()
}

// Find returns whether requests to a function need a key or a token. It fails with NotFound without
// the function.
func (s *Service) Find(ctx context.Context, p *projectdb.Project, name string) (verifyJWT bool, err error) {
	st, err := s.find(ctx, p, name)
	return st.VerifyJWT, err
}

func (s *Service) find(ctx context.Context, p *projectdb.Project, name string) (state, error) {
	k := key{p.UUID, name}
	s.mu.Lock()
	cached, ok := s.states[k]
	s.mu.Unlock()

	if ok && time.Since(cached.at) < stateTTL {
		return cached.state, cached.err
	}

	st, err := pg.One[state](ctx, p.Trusted(), `
		select f.verify_jwt, encode(f.sha256, 'hex') as version, (
			select coalesce(sum(extract(epoch from updated_at) * 1e6 + hashtext(name)), 0)::bigint
			from socle.edge_function_secrets) as secrets,`+limitColumns+`
		from socle.edge_functions f left join socle.edge_function_limits l on true
		where f.name = @name`, pgx.StrictNamedArgs{"name": name})
	st.Limits = st.Limits.withDefaults()
	if err != nil && !fault.Is(err, fault.NotFound) {
		return state{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.states[k] = cachedState{st, err, time.Now()} // removed by check
	return st, err
}

// Forget drops what is known of a project's functions, because it changed or its database is being
// swapped. Processes of former versions finish their requests.
func (s *Service) Forget(project uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for k := range s.states {
		if k.project == project {
			delete(s.states, k)
		}
	}
}

// End ends the processes of a project, because it was paused or deleted.
func (s *Service) End(project uuid.UUID) {
	s.Forget(project)

	s.mu.Lock()
	defer s.mu.Unlock()

	for w := range s.all {
		if w.key.project == project {
			w.killLocked("project ended")
		}
	}
}

// Deploy makes a new version of a function the current one, once it has started. It fails with
// Unprocessable and its errors if it does not start, and with Unavailable if the server can't run
// functions.
func (s *Service) Deploy(ctx context.Context, p *projectdb.Project, d Deployment) (EdgeFunction, error) {
	if err := d.check(); err != nil {
		return EdgeFunction{}, err
	}

	if err := s.try(ctx, p, d); err != nil {
		return EdgeFunction{}, bootFault(err)
	}

	f, err := record(ctx, p, d)
	if err == nil {
		s.Forget(p.UUID)
		s.startCompile(ctx, p, f.Version, d.Code)
	}

	return f, err
}

// Update changes a function: its current version, and whether requests need a key or token. nil
// leaves a value unchanged. It fails with NotFound without the function, and with Unprocessable
// without the version.
func (s *Service) Update(
	ctx context.Context, p *projectdb.Project, name string, version *string, verifyJWT *bool,
) (EdgeFunction, error) {
	defer s.Forget(p.UUID)
	return update(ctx, p, name, version, verifyJWT)
}

// Delete deletes a function with its versions. It fails with NotFound without it.
func (s *Service) Delete(ctx context.Context, p *projectdb.Project, name string) (EdgeFunction, error) {
	defer s.Forget(p.UUID)
	return remove(ctx, p, name)
}

// SetSecret sets a secret. It fails with Unprocessable beyond a limit.
func (s *Service) SetSecret(
	ctx context.Context, p *projectdb.Project, name, value string,
) (EdgeFunctionSecret, error) {
	defer s.Forget(p.UUID)
	return setSecret(ctx, p, name, value)
}

// DeleteSecret deletes a secret. It fails with NotFound without it.
func (s *Service) DeleteSecret(
	ctx context.Context, p *projectdb.Project, name string,
) (EdgeFunctionSecret, error) {
	defer s.Forget(p.UUID)
	return deleteSecret(ctx, p, name)
}

// try starts a version of a function and ends it.
func (s *Service) try(ctx context.Context, p *projectdb.Project, d Deployment) error {
	limits, err := GetLimits(ctx, p.Trusted())
	if err != nil {
		return err
	}

	lease, err := s.acquirePlaces(ctx, p.Key(ctx), limits.MemoryMB)
	if err != nil {
		return err
	}
	defer lease.Release()

	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()

	env, err := s.environment(ctx, p)
	if err != nil {
		return err
	}

	b, err := s.takeBlank(ctx, limits.MemoryMB)
	if err != nil {
		return err
	}
	defer s.startRefill() // a call follows soon
	defer b.process.Close()

	trial := &worker{service: s, key: key{p.UUID, d.Name}, project: p, state: state{Limits: limits},
		process: b.process, stopped: b.process.Exited()}
	b.owner.Store(trial)

	return b.process.Load(ctx, s.module(d.Code, nil, env))
}

// bootFault returns a failure to start a function as an error for clients.
func bootFault(err error) error {
	if boot, ok := errors.AsType[*runtime.BootError](err); ok {
		return fault.New(fault.Unprocessable, "%s", boot.Error()).WithCode("boot_error").WithCause(err)
	}
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		return fault.New(fault.Unavailable, "%s", unavailable.Error()).WithCode("functions_unavailable").WithCause(err)
	}
	if errors.Is(err, ErrBusy) {
		return fault.New(fault.Unavailable, "no process is free for the function").WithCode("busy").WithCause(err)
	}

	return err
}

// environment returns the variables of a project's functions. Those of the server go first.
func (s *Service) environment(ctx context.Context, p *projectdb.Project) (map[string]string, error) {
	env, err := openSecrets(ctx, p)
	if err != nil {
		return nil, err
	}

	variables, err := s.Environment(ctx, p)
	if err != nil {
		return nil, err
	}
	for name, value := range variables {
		env[name] = value
	}

	env["SB_EXECUTION_ID"] = uuid.NewString()
	return env, nil
}

// module returns a function as its process needs it.
func (s *Service) module(code, codeCache []byte, env map[string]string) runtime.Module {
	return runtime.Module{Code: code, CodeCache: codeCache, Env: env,
		Origins: runtime.Origins{Public: s.Self.URL, Inside: selfOrigin}}
}

// readCode returns a version's code. It fails with a *runtime.BootError if the version is missing
// or damaged.
func readCode(ctx context.Context, p *projectdb.Project, name, version string) ([]byte, error) {
	sum, err := hex.DecodeString(version)
	if err != nil {
		return nil, err
	}

	code, err := pg.Value[[]byte](ctx, p.Trusted(), `
		select code from socle.edge_function_versions where function_name = @name and sha256 = @sha256`,
		pgx.StrictNamedArgs{"name": name, "sha256": sum})
	if fault.Is(err, fault.NotFound) {
		return nil, &runtime.BootError{Text: "the database has no code of the version"}
	}
	if got := sha256.Sum256(code); err == nil && !bytes.Equal(got[:], sum) {
		return nil, &runtime.BootError{Text: "the code of the version is damaged"}
	}

	return code, err
}
