package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/client"
	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/config"
)

// defaultURL is the server's address without any setting.
const defaultURL = "http://localhost:8080"

// account is the stored state of socle login and socle use.
type account struct {
	URL     string         `json:"url"`
	Project string         `json:"project,omitempty"`
	Session client.Session `json:"session"`
}

// value returns a variable of the environment, or "".
func (e environment) value(name string) string {
	v, _ := e.lookup(name)
	return v
}

// lookup returns a variable of the environment, and whether there is one.
func (e environment) lookup(name string) (string, bool) {
	for _, entry := range e.environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			return v, true
		}
	}

	return "", false
}

// accountFile returns the path of the stored account.
func (e environment) accountFile() (string, error) {
	dir := cmp.Or(e.value("XDG_CONFIG_HOME"), e.value("APPDATA")) // the latter on Windows
	if dir == "" {
		home := e.value("HOME")
		if home == "" {
			return "", errors.New("cannot store the log-in without HOME, XDG_CONFIG_HOME or APPDATA; use " +
				config.ClientURL + " and " + config.ClientToken + " instead")
		}

		dir = filepath.Join(home, ".config")
	}

	return filepath.Join(dir, "socle", "login.json"), nil
}

// withAccount loads the account, runs f on it and stores changes. A refresh token is single-use, so
// concurrent commands wait for each other.
func (e environment) withAccount(f func(a *account) error) error {
	name, err := e.accountFile()
	if err != nil {
		return err
	}

	var a account
	return withStored(name, &a, func() error { return f(&a) })
}

// withStored loads a file of JSON into v, runs f and stores changes of v. A file lock serializes
// concurrent commands.
func withStored(name string, v any, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}

	lock, err := os.OpenFile(name+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()

	if err := lockFile(lock); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}

	former, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(former, v)
	}

	if _, damaged := errors.AsType[*json.SyntaxError](err); damaged {
		return fmt.Errorf("%s is damaged: remove it, and repeat socle login or socle link (%w)", name, err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, err)
	}

	if err := f(); err != nil {
		return err
	}

	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil || string(text) == string(former) {
		return err
	}

	next, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = next.Write(text)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}

	return os.Rename(next.Name(), name)
}

func (e environment) addConnectionFlags(cmd *cobra.Command) {
	cmd.Flags().String("url", "", "URL of the server (default: "+config.ClientURL+", then the server of socle login)")
	cmd.Flags().String("project", "",
		"name or UUID of the project (default: "+config.ClientProject+", then the project of socle use)")
	_ = cmd.RegisterFlagCompletionFunc("project", completeProjects(e)) // the flag exists
	cmd.Flags().Bool("json", false, "print the response as JSON")
}

// client returns a client for a command. Flags override the environment, which overrides the stored
// account. It refreshes a session whose token is about to expire. Its project may be a name.
func (e environment) client(cmd *cobra.Command) (*client.Client, error) {
	flag := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}

	c := newClient(cmp.Or(flag("url"), e.value(config.ClientURL)))
	c.Token, c.Project = e.value(config.ClientToken), cmp.Or(flag("project"), e.value(config.ClientProject))

	if c.URL != "" && c.Token != "" {
		return c, nil
	}

	err := e.withAccount(func(a *account) error {
		c.URL, c.Project = cmp.Or(c.URL, a.URL, defaultURL), cmp.Or(c.Project, a.Project)
		if c.Token != "" || c.URL != cmp.Or(a.URL, defaultURL) { // a token is sent to its own server only
			return nil
		}

		c.Token = a.Session.Token
		return refresh(cmd.Context(), c, a)
	})

	return c, err
}

func newClient(address string) *client.Client {
	return &client.Client{URL: completeURL(address), UserAgent: "socle/" + build.Version()}
}

// completeURL adds the scheme to the address of a server: HTTP for this machine, HTTPS for others.
func completeURL(address string) string {
	if address == "" || strings.Contains(address, "://") {
		return strings.TrimSuffix(address, "/")
	}

	host, _, _ := strings.Cut(address, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	scheme := "https"
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host == "localhost" || (err == nil && ip.IsLoopback()) {
		scheme = "http"
	}

	return scheme + "://" + strings.TrimSuffix(address, "/")
}

// minTokenLifetime is the remaining lifetime below which a token is refreshed.
const minTokenLifetime = 30 * time.Second

func refresh(ctx context.Context, c *client.Client, a *account) error {
	if a.Session.Token == "" || time.Until(a.Session.ExpiresAt) > minTokenLifetime {
		return nil
	}

	s, err := c.Refresh(ctx, a.Session.RefreshToken)
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusUnauthorized {
		return errors.New("the session has ended; log in: socle login")
	}
	if err != nil {
		return explain(err)
	}

	a.Session = s
	return nil
}

func login(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "login",
		Short:   "Log in to a server; the password is prompted for or read from standard input",
		Args:    noArgs,
		GroupID: groupStart,
		PreRunE: checkRequired,
	}

	email := cmd.Flags().String("email", "", "e-mail address (required)")
	code := cmd.Flags().String("code", "", "code of the second factor")
	cmd.Flags().String("url", "", "URL of the server (default: "+config.ClientURL+", then "+defaultURL+")")
	_ = cmd.MarkFlagRequired("email") // the flag exists

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		password, err := readPassword(cmd, "Password: ")
		if err != nil {
			return err
		}

		address := cmp.Or(cmd.Flags().Lookup("url").Value.String(), e.value(config.ClientURL), defaultURL)
		c := newClient(address)

		s, err := c.Login(cmd.Context(), *email, password, *code)
		if err != nil {
			return explain(err)
		}

		if err := e.withAccount(func(a *account) error {
			if a.URL != c.URL {
				a.Project = ""
			}

			a.URL, a.Session = c.URL, s
			return nil
		}); err != nil {
			return err
		}

		fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s.\n", c.URL)
		return nil
	}

	return cmd
}

func logout(e environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "logout",
		Short:   "End the session and delete its stored tokens",
		Args:    noArgs,
		GroupID: groupStart,
	}

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return e.withAccount(func(a *account) error {
			if a.Session.Token == "" {
				return nil
			}

			c := newClient(a.URL)
			c.Token = a.Session.Token
			_, err := c.Do(cmd.Context(), client.Request{Method: http.MethodPost, Path: "/users/logout"})
			if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusUnauthorized {
				err = nil // the session has already ended
			}

			a.Session = client.Session{}

			if err != nil {
				return explain(err)
			}

			fmt.Fprintln(cmd.OutOrStdout(), "Logged out.")
			return nil
		})
	}

	return cmd
}
