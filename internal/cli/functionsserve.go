package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/function/bundle"
	"github.com/socle-dev/socle/internal/function/local"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/repository"
)

// serveKeyTTL is the lifetime of the keys that functions on this machine get.
const serveKeyTTL = 24 * time.Hour

// outboundNetworks names private networks that functions may reach, as for a server.
const outboundNetworks = "SOCLE_OUTBOUND_NETWORKS"

func newFunctionServe(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve [DIR]", Short: "Serve the edge functions of the repository on this machine",
		Args: cobra.MaximumNArgs(1),
		Long: "Serve functions at /functions/v1/NAME, in the sandbox that they have on a server, and load them anew when " +
			"their files change. Their environment has the address and keys of the project, and the secrets in " +
			"supabase/functions/.env or --env-file.\n\nOn other systems than Linux there is no sandbox: functions have all " +
			"rights of your own programs. Private networks are closed to them, as on a server, unless " + outboundNetworks +
			" names them.",
		Example: "  socle functions serve\n  curl -d '{\"name\": \"Ada\"}' http://127.0.0.1:54321/functions/v1/hello",
	}

	addFolder(cmd)
	e.addConnectionFlags(cmd)
	addBundleFlags(cmd)
	_ = cmd.Flags().MarkHidden("json") // lines of a log
	cmd.Flags().String("addr", devAddr, "address to listen on, host:port")
	cmd.Flags().String("env-file", "", "file of secrets, lines NAME=value (default: supabase/functions/.env)")
	cmd.Flags().Bool("no-verify-jwt", false, "let requests without a key or token of the project in")
	cmd.Flags().Bool("no-walls", false, "run functions with all rights of your own programs, where there is no sandbox")

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			if err := cmd.Flags().Set("dir", args[0]); err != nil {
				return err
			}
		}

		return e.serveFunctions(cmd)
	}

	return cmd
}

// functionServe is a running socle functions serve.
type functionServe struct {
	e      environment
	cmd    *cobra.Command
	root   string
	client *client.Client
	keys   map[string]string // variables that a server sets
	mu     sync.Mutex        // for lines of the log
}

// serveFunctions serves until the command is interrupted.
func (e environment) serveFunctions(cmd *cobra.Command) error {
	root, _, err := e.repositoryFunctions(cmd, nil)
	if err != nil {
		return err
	}
	program, err := e.deno()
	if err != nil {
		return err
	}

	s := &functionServe{e: e, cmd: cmd, root: root}
	if err := s.connect(); err != nil {
		return err
	}

	c, err := s.config(program)
	if err != nil {
		return err
	}

	addr, _ := cmd.Flags().GetString("addr")
	listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; another address: --addr", err)
	}

	functions := local.New(c)
	server := &http.Server{Handler: functions, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(cmd.Context(), func() { _ = server.Close() })
	defer stop()

	var open sync.WaitGroup
	open.Go(func() { functions.Run(cmd.Context()) })
	s.printReady(listener.Addr(), c.Walls)

	err = server.Serve(listener)
	open.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}

	return err
}

// connect makes the keys of the project that functions have in their environment.
func (s *functionServe) connect() error {
	d, err := describe()
	if err != nil {
		return err
	}
	if s.client, err = s.e.repositoryClient(s.cmd, d); err != nil {
		return err
	}

	path := "/projects/" + url.PathEscape(s.client.Project)
	reply, err := s.client.Do(s.cmd.Context(), client.Request{Method: http.MethodGet, Path: path + "/jwt-secret"})
	if err != nil {
		return explain(err)
	}

	var secret struct{ Secret string }
	if err := reply.Into(&secret); err != nil {
		return err
	}

	s.keys = map[string]string{"SUPABASE_URL": s.client.URL + path, "SB_REGION": "local"}
	roles := map[string]string{"SUPABASE_ANON_KEY": "anon", "SUPABASE_SERVICE_ROLE_KEY": "service_role"}
	for name, role := range roles {
		if s.keys[name], err = jwt.SignRole([]byte(secret.Secret), role, time.Now().Add(serveKeyTTL)); err != nil {
			return err
		}
	}

	return nil
}

// config returns the configuration of the local server.
func (s *functionServe) config(program string) (local.Config, error) {
	var networks []netip.Prefix
	isSeparator := func(r rune) bool { return r == ',' || r == ' ' }
	for _, text := range strings.FieldsFunc(s.e.value(outboundNetworks), isSeparator) {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return local.Config{}, fmt.Errorf("%w: %s: %w", errUsage, outboundNetworks, err)
		}
		networks = append(networks, network)
	}

	project, err := url.Parse(s.client.URL)
	if err != nil {
		return local.Config{}, err
	}
	host := project.Host
	if project.Port() == "" {
		host = net.JoinHostPort(project.Hostname(), map[string]string{"http": "80", "https": "443"}[project.Scheme])
	}

	hosts, _ := s.cmd.Flags().GetStringSlice("allow-import")
	noWalls, _ := s.cmd.Flags().GetBool("no-walls")

	return local.Config{
		Bundler:  &bundle.Bundler{Program: program, Root: s.root, Environ: s.e.environ, Hosts: hosts},
		Outbound: outbound.New(networks), Project: host, Walls: goruntime.GOOS == "linux" && !noWalls,
		Functions: s.functions, Environment: s.environment, Verify: s.verify, Changed: s.changed, Log: s.log,
	}, nil
}

// functions returns the functions as the files say now.
func (s *functionServe) functions() ([]repository.Function, error) {
	all, _, err := repository.ReadFunctions(s.root, s.e.lookup)
	if err != nil {
		return nil, err
	}

	if open, _ := s.cmd.Flags().GetBool("no-verify-jwt"); open {
		for i := range all {
			all[i].VerifyJWT = new(bool)
		}
	}

	return all, setImportMap(s.cmd, s.root, all)
}

// envFile returns the path of the file of secrets, and whether a flag names it.
func (s *functionServe) envFile() (string, bool) {
	if name, _ := s.cmd.Flags().GetString("env-file"); name != "" {
		return name, true
	}

	return filepath.Join(s.root, filepath.FromSlash(repository.FunctionVariablesFile)), false
}

// environment returns the variables of functions. Those of the server go first. Without a flag, the
// file must lie in the repository: a link could lead to secrets of the developer.
func (s *functionServe) environment() (map[string]string, error) {
	env, err := s.fileVariables()
	if err != nil {
		return nil, err
	}

	for name, value := range s.keys {
		env[name] = value
	}

	return env, nil
}

// fileVariables reads the file of secrets.
func (s *functionServe) fileVariables() (map[string]string, error) {
	name, given := s.envFile()
	if !given {
		return repository.FunctionVariables(s.root)
	}

	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}

	return repository.ParseVariables(string(text)), nil
}

// verify asks the project whether it knows the key or token of a request.
func (s *functionServe) verify(r *http.Request) error {
	header := http.Header{}
	for _, name := range []string{"Apikey", "Authorization"} {
		if text := r.Header.Get(name); text != "" {
			header.Set(name, text)
		}
	}
	if len(header) == 0 {
		return errors.New("the request has no key or token of the project")
	}

	known, err := http.NewRequestWithContext(r.Context(), http.MethodHead, s.keys["SUPABASE_URL"]+"/rest/v1/", nil)
	if err != nil {
		return err
	}
	known.Header = header

	res, err := http.DefaultClient.Do(known)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized {
		return errors.New("the project does not know the key or token")
	}

	return nil
}

// changed returns what differs after a change of the files of functions.
func (s *functionServe) changed() string {
	name, _ := s.envFile()
	return fingerprint(filepath.Join(s.root, repository.Folder), func(folder string) bool {
		return folder == "node_modules" || folder == "migrations"
	}, name)
}

// log prints a line of a function.
func (s *functionServe) log(function, stream, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	line := functionLine{At: time.Now(), Function: function, Stream: stream, Message: text}
	_ = line.print(s.cmd.OutOrStdout(), false)
}

// printReady prints where functions are served, and what they may do.
func (s *functionServe) printReady(at net.Addr, walls bool) {
	errs := s.cmd.ErrOrStderr()
	if !walls {
		fmt.Fprintln(errs, "There is no sandbox here: functions have all rights of your own programs.")
	}

	all, _ := s.functions()
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	slices.Sort(names)

	fmt.Fprintf(errs, "Serving http://%s%s{%s} for the project at %s. Stop with Ctrl-C.\n", at, local.Prefix,
		strings.Join(names, ","), s.keys["SUPABASE_URL"])
}
