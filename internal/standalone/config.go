package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/catalog"
)

// Config is a [Server]'s configuration. [Load] returns a valid one.
type Config struct {
	LogLevel slog.Level
	Level    *slog.LevelVar // follows LogLevel at each reload; may be nil
	Warnings []string       // one line for each given setting that is not supported

	databaseURL          string
	pool                 int
	maxLifetime, maxIdle time.Duration
	channel              string
	listen, inDatabase   bool
	addr, adminAddr      listenAddr
	preConfig            string
	traceHeader          string
	preRequest, rootSpec string
	secret               string
	base64               bool
	jwt                  jwt.Config
	api                  rest.Config
	hoisted              []string
	file                 string // configuration file path; "" for none
	environ              []string
	pipes                map[string]string // pipe contents by path, since they cannot be read again
	fromFile, fromEnv    map[string]string // explicit values by setting name
	effective            map[string]string // effective values by setting name
}

// listenAddr is a listen address.
type listenAddr struct {
	socket    string // Unix socket path; "" for host and port
	mode      os.FileMode
	host      string
	port      int  // negative for none
	reusePort bool // with SO_REUSEPORT
}

// Load reads the settings from a configuration file, "" for none, and from an environment as
// [os.Environ] returns it, which takes precedence. The error joins one error for each mistake.
func Load(file string, environ []string) (Config, error) {
	return load(file, environ, map[string]string{})
}

// reload reads the settings again.
func (c Config) reload() (Config, error) { return load(c.file, c.environ, c.pipes) }

func load(file string, environ []string, pipes map[string]string) (Config, error) {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}

	var texts map[string]string
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return Config{}, err
		}

		if texts, err = parseFile(string(text), env); err != nil {
			return Config{}, fmt.Errorf("%s: %w", file, err)
		}
	}

	fromFile, errs := resolveNames(texts, file)

	fromEnv, more := resolveNames(variables(env), "")
	if errs = append(errs, more...); len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}

	c, err := build(pipes, fromFile, fromEnv, nil)
	c.file, c.environ = file, environ

	return c, err
}

// withParameters returns the configuration combined with database parameters, such as
// pgrst.db_schemas, which take precedence.
func (c Config) withParameters(parameters map[string]string) (Config, error) {
	fromDatabase := map[string]string{}
	var ignored []string
	for _, parameter := range slices.Sorted(maps.Keys(parameters)) {
		name := strings.TrimPrefix(parameter, "pgrst.")
		if strings.HasPrefix(name, appPrefix) {
			fromDatabase[name] = parameters[parameter]
			continue
		}

		s, ok := byName(strings.ReplaceAll(name, "_", "-"))
		if !ok || !s.inDatabase {
			ignored = append(ignored, parameter+" cannot be set in the database and is ignored")
			continue
		}

		fromDatabase[s.name] = parameters[parameter]
	}

	d, err := build(c.pipes, c.fromFile, c.fromEnv, fromDatabase)
	d.file, d.environ, d.Level = c.file, c.environ, c.Level
	d.Warnings = append(d.Warnings, ignored...)

	return d, err
}

// variables returns environment variable values by setting name.
func variables(env map[string]string) map[string]string {
	texts := map[string]string{}
	for variable, value := range env {
		name, ok := strings.CutPrefix(variable, prefix)
		if !ok || isServiceLink(name, value) {
			continue
		}

		name = strings.ToLower(name)
		if app, ok := strings.CutPrefix(name, "app_settings_"); ok {
			texts[appPrefix+app] = value
			continue
		}

		texts[strings.ReplaceAll(name, "_", "-")] = value
	}

	return texts
}

// serviceLink matches the variables that Kubernetes sets in each container for a service whose name
// begins with pgrst, without the prefix.
var serviceLink = regexp.MustCompile(
	`^([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// isServiceLink reports whether a variable describes a Kubernetes service. One that ends in PORT
// has a URL, such as tcp://10.0.0.1:3000.
func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) ||
		((name == "PORT" || strings.HasSuffix(name, "_PORT")) && strings.Contains(value, "://"))
}

// appName matches the allowed parameter names of app.settings: statements contain them.
var appName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// resolveNames maps former setting names to current ones and returns an error for each unknown
// name. file is empty for settings from the environment.
func resolveNames(texts map[string]string, file string) (map[string]string, []error) {
	current := map[string]string{}
	var errs []error
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}

	for _, name := range slices.Sorted(maps.Keys(texts)) {
		s, ok := byName(name)
		app, isApp := strings.CutPrefix(name, appPrefix)
		switch {
		case ok:
			if _, twice := texts[s.name]; !twice || name == s.name {
				current[s.name] = texts[name]
			}
		case isApp && appName.MatchString(app):
			current[name] = texts[name]
		case file != "":
			errs = append(errs,
				fmt.Errorf("%s: unknown setting; did you mean %s?", name, config.Nearest(name, names)))
		default:
			near, _ := byName(config.Nearest(name, names))
			errs = append(errs,
				fmt.Errorf("%s: unknown setting; did you mean %s?", setting{name: name}.variable(),
					near.variable()))
		}
	}

	return current, errs
}

// build returns the configuration from the settings in a file, the environment and the database. It
// adds the pipe contents that it reads to pipes.
func build(pipes, fromFile, fromEnv, fromDatabase map[string]string) (Config, error) {
	c := Config{pipes: pipes, fromFile: fromFile, fromEnv: fromEnv, effective: map[string]string{}}
	c.adminAddr.port = -1
	texts := map[string]string{}
	for _, source := range []map[string]string{fromFile, fromEnv, fromDatabase} {
		maps.Copy(texts, source)
	}

	var errs []error
	for _, s := range settings {
		text, ok := texts[s.name]
		if text == "" && !(ok && s.name == "db-extra-search-path") { // an empty list is a value here
			text = s.def
		}

		c.effective[s.name] = text

		if text == "" {
			continue
		}

		if s.set == nil {
			if text != s.def {
				c.Warnings = append(c.Warnings, s.name+" is not supported: "+s.description)
			}
			continue
		}

		if err := s.set(&c, text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
	}

	for name, value := range texts {
		if strings.HasPrefix(name, appPrefix) {
			if c.api.Settings == nil {
				c.api.Settings = map[string]string{}
			}

			c.api.Settings[name] = value
			c.effective[name] = value
		}
	}

	if len(errs) == 0 {
		errs = c.derive()
	}

	return c, errors.Join(errs...)
}

// derive validates and derives fields that depend on more than one setting.
func (c *Config) derive() []error {
	var errs []error
	if !c.listen {
		c.channel = ""
	}
	if c.adminAddr.host == "" {
		c.adminAddr.host = c.addr.host
	}
	bothOnPorts := c.addr.socket == "" && c.adminAddr.socket == ""
	if bothOnPorts && c.addr.port != 0 && c.adminAddr.port >= 0 && c.adminAddr.port == c.addr.port {
		errs = append(errs, errors.New("admin-server-port: must differ from server-port"))
	}

	c.api.PreRequest = c.function(c.preRequest)
	c.api.RootSpec = c.function(c.rootSpec)

	if err := c.initVerifier(); err != nil {
		errs = append(errs, fmt.Errorf("jwt-secret, jwt-role-claim-key: %w", err))
	}

	return errs
}

// function parses schema.name, or a function name in the default schema.
func (c *Config) function(text string) catalog.Name {
	if text == "" {
		return catalog.Name{}
	}

	schema, name, ok := strings.Cut(text, ".")
	if !ok {
		return catalog.Name{Schema: c.api.Schemas[0], Name: text}
	}

	return catalog.Name{Schema: schema, Name: name}
}

// initVerifier creates the token verifier if there is a secret.
func (c *Config) initVerifier() error {
	secret := c.secret
	if c.base64 && secret != "" {
		var err error
		if secret, err = decodeBase64(secret); err != nil {
			return err
		}
	}

	switch {
	case strings.HasPrefix(strings.TrimSpace(secret), "{"):
		c.jwt.Keys = []byte(secret)
	case secret != "":
		c.jwt.Secret = []byte(secret)
	}

	c.jwt.Anonymous = c.api.Auth.Anonymous
	v, err := jwt.New(c.jwt)
	if err != nil {
		return err
	}

	if secret != "" {
		c.api.Auth.Verify = func(_ *http.Request, token string) (rest.Caller, error) {
			t, err := v.Verify(token)
			return rest.Caller{Role: t.Role, Claims: t.Claims, Subject: t.Subject, Session: t.Session}, err
		}
	}

	return nil
}

// isSet reports whether the address is configured.
func (a listenAddr) isSet() bool { return a.socket != "" || a.port >= 0 }

// listen opens a listener. It replaces a socket whose server no longer answers.
func (a listenAddr) listen() (net.Listener, error) {
	if a.socket != "" {
		if conn, err := net.Dial("unix", a.socket); err == nil {
			_ = conn.Close() // only a probe
			return nil, fmt.Errorf("%s: another server listens there", a.socket)
		}

		if info, err := os.Lstat(a.socket); err == nil && info.Mode().Type() == os.ModeSocket {
			if err := os.Remove(a.socket); err != nil {
				return nil, err
			}
		}

		l, err := net.Listen("unix", a.socket)
		if err != nil {
			return nil, err
		}

		if err := os.Chmod(a.socket, a.mode); err != nil {
			return nil, errors.Join(err, l.Close())
		}

		return l, nil
	}

	network, host := a.network()
	var l net.ListenConfig
	if a.reusePort {
		l.Control = sharePort
	}

	return l.Listen(context.Background(), network, net.JoinHostPort(host, strconv.Itoa(a.port)))
}

// network returns the network and the host for PostgREST's special host names, or the host itself.
func (a listenAddr) network() (network, host string) {
	switch a.host {
	case "*", "*4", "*6":
		return "tcp", ""
	case "!4":
		return "tcp4", ""
	case "!6":
		return "tcp6", ""
	}

	return "tcp", a.host
}

// sharePort lets other processes of the same OS user listen on the port.
func sharePort(_, _ string, c syscall.RawConn) error {
	option := 0x200 // SO_REUSEPORT on BSD
	if runtime.GOOS == "linux" {
		option = 0xf
	}

	var optionErr error
	err := c.Control(func(fd uintptr) { optionErr = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, option, 1) })

	return errors.Join(err, optionErr)
}
