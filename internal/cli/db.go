package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// defaultProxyAddr is not 5432, on which a PostgreSQL of this machine may listen.
const defaultProxyAddr = "127.0.0.1:5433"

// addDatabase adds the commands over PostgreSQL's protocol.
func addDatabase(group *cobra.Command, e environment) {
	group.AddCommand(dbProxy(e), dbPSQL(e), dbURL(e), newDBImport(e), newDBDump(e))
}

func dbProxy(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "proxy", Short: "Listen for PostgreSQL clients of this machine", Args: noArgs,
		Example: "  socle db proxy --listen 127.0.0.1:6000",
		Long: "Listen for PostgreSQL clients, and connect them to the project's database through the server.\n\n" +
			"Each run has a password of its own, which the printed address contains. A session has the rights of the " +
			"project's owner. Requires the role of admin in the project's organization.",
	}

	address := cmd.Flags().String("listen", defaultProxyAddr, "address to listen on, host:port")
	e.addTunnelFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := newTunnel(cmd, e)
		if err != nil {
			return err
		}

		p, err := t.listen(cmd.Context(), *address)
		if err != nil {
			return err
		}

		forget, err := e.rememberProxy(p)
		if err != nil {
			return errors.Join(err, p.listener.Close())
		}
		defer forget()

		if host, ok := p.listener.Addr().(*net.TCPAddr); ok && !host.IP.IsLoopback() {
			fmt.Fprintln(cmd.ErrOrStderr(), "socle: other machines can connect, and their connections are not encrypted")
		}

		fmt.Fprintln(cmd.OutOrStdout(), p.URL())
		fmt.Fprintln(cmd.ErrOrStderr(), "Stop with Ctrl-C.")

		return p.serve(cmd.Context())
	}

	return cmd
}

// addTunnelFlags adds the flags that select the server and the project.
func (e environment) addTunnelFlags(cmd *cobra.Command) {
	e.addConnectionFlags(cmd)
	_ = cmd.Flags().MarkHidden("json") // no response to print
}

func dbPSQL(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "psql [flags] [-- ARGUMENT...]", Short: "Start psql on the project's database", Args: cobra.ArbitraryArgs,
		Example: "  socle db psql -- -c 'table books'",
		Long: "Start psql on the project's database, through the server. Arguments after -- are those of psql, which " +
			"must be installed.",
	}

	e.addTunnelFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.ArgsLenAtDash() > 0 || (cmd.ArgsLenAtDash() < 0 && len(args) > 0) {
			return fmt.Errorf("%w: arguments of psql follow --: socle db psql -- %s", errUsage, args[0])
		}

		name, err := exec.LookPath("psql")
		if err != nil {
			return errors.New("psql is not installed; on Debian and Ubuntu: apt install postgresql-client. " +
				"Without it: socle sql, or socle db proxy for other programs")
		}

		return e.runThroughTunnel(cmd, name, args)
	}

	return cmd
}

// runThroughTunnel runs one of PostgreSQL's programs on the project's database.
func (e environment) runThroughTunnel(cmd *cobra.Command, name string, args []string) error {
	t, err := newTunnel(cmd, e)
	if err != nil {
		return err
	}

	p, err := t.listen(cmd.Context(), "127.0.0.1:0")
	if err != nil {
		return err
	}

	// Ctrl-C is for the program: it cancels a statement.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	ctx, cancel := context.WithCancel(context.WithoutCancel(cmd.Context()))
	served := make(chan error, 1)
	go func() { served <- p.serve(ctx) }()

	program := exec.Command(name, args...)
	program.Env = append(e.environ, p.environ()...)
	program.Stdin, program.Stdout, program.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()

	err = program.Run()
	cancel()

	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(name), err)
	}

	return errors.Join(err, <-served)
}

func dbURL(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "url", Short: "Print the address of the running proxy, with its password", Args: noArgs,
		Example: "  DATABASE_URL=$(socle db url)",
		Long:    "Print the address of the project's database at the socle db proxy that runs, with its password.",
	}

	e.addTunnelFlags(cmd)

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := newTunnel(cmd, e)
		if err != nil {
			return err
		}

		name, err := e.proxyFile(t)
		if err != nil {
			return err
		}

		address, err := readProxyFile(cmd.Context(), name)
		if err != nil {
			return err
		}

		fmt.Fprintln(cmd.OutOrStdout(), address)
		return nil
	}

	return cmd
}

// runningProxy is the content of a proxy's file.
type runningProxy struct {
	Server string `json:"server"`
	URL    string `json:"url"`
}

// proxyFile returns the path of the file with the address of a project's proxy.
func (e environment) proxyFile(t *tunnel) (string, error) {
	name, err := e.accountFile()
	if err != nil {
		return "", err
	}

	return filepath.Join(filepath.Dir(name), "db-proxy-"+t.Project+".json"), nil
}

// rememberProxy writes the address of a proxy to its file. forget removes it.
func (e environment) rememberProxy(p *databaseProxy) (forget func(), err error) {
	name, err := e.proxyFile(p.tunnel)
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(runningProxy{p.Server, p.URL()})
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return nil, err
	}

	return func() {
		if now, err := os.ReadFile(name); err == nil && string(now) == string(text) { // not of a later proxy
			_ = os.Remove(name)
		}
	}, os.Rename(name+".new", name)
}

// proxyTimeout bounds the check that a proxy listens.
const proxyTimeout = 2 * time.Second

// readProxyFile returns the address of a proxy that listens.
func readProxyFile(ctx context.Context, name string) (string, error) {
	errNone := errors.New("no proxy of this project is running; start one: socle db proxy")

	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNone
	}
	if err != nil {
		return "", err
	}

	var p runningProxy
	if err := json.Unmarshal(text, &p); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}

	u, err := url.Parse(p.URL)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}

	conn, err := (&net.Dialer{Timeout: proxyTimeout}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return "", errNone
	}

	return p.URL, conn.Close()
}
