package standalone

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// setting is a row in the settings table.
type setting struct {
	name        string // in a configuration file
	alias       string // former name, or ""
	def         string // as written in a file
	description string // one clause; for an unsupported setting the behavior instead
	inDatabase  bool   // may be set by ALTER ROLE

	set func(*Config, string) error // nil: not supported. The text is not empty.
}

const (
	prefix    = "PGRST_"
	appPrefix = "app.settings."
)

// variable returns the name of the setting's environment variable.
func (s setting) variable() string {
	return prefix + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// settings declares all settings.
var settings = []setting{
	{"db-uri", "", "postgresql://",
		"address of the database, or @file; missing parts come from PGHOST, PGUSER and so on", false,
		secretField(func(c *Config) *string { return &c.databaseURL })},
	{"db-schemas", "db-schema", "public", "exposed schemas, separated by commas, the default first", true,
		field(schemas, func(c *Config) *[]string { return &c.api.Schemas })},
	{"db-anon-role", "", "", "role of requests without a token; empty: they are rejected", true,
		field(verbatim, func(c *Config) *string { return &c.api.Auth.Anonymous })},
	{"db-extra-search-path", "", "public",
		"schemas in the search path after the exposed one, separated by commas", true,
		field(list, func(c *Config) *[]string { return &c.api.SearchPath })},
	{"db-pre-request", "pre-request", "", "function called before every statement", true,
		field(verbatim, func(c *Config) *string { return &c.preRequest })},
	{"db-root-spec", "root-spec", "", "function that serves the root path", true,
		field(verbatim, func(c *Config) *string { return &c.rootSpec })},
	{"db-max-rows", "max-rows", "", "maximum number of rows of a response; empty: no limit", true, maxRows},
	{"db-tx-end", "", "commit", "commit, commit-allow-override, rollback, rollback-allow-override", true, txEnd},
	{"db-aggregates-enabled", "", "false", "allow aggregates", true,
		field(boolean, func(c *Config) *bool { return &c.api.Features.Aggregates })},
	{"db-plan-enabled", "", "false", "allow requests for the plan of a statement", true,
		field(boolean, func(c *Config) *bool { return &c.api.Features.Plan })},
	{"db-pool", "", "10", "maximum number of connections", false,
		field(intRange(1, 10000), func(c *Config) *int { return &c.pool })},
	{"db-pool-acquisition-timeout", "", "10", "timeout in seconds of a request for a connection", false,
		field(seconds, func(c *Config) *time.Duration { return &c.api.Session.AcquireTimeout })},
	{"db-pool-max-lifetime", "", "1800", "maximum lifetime of a connection in seconds", false,
		field(seconds, func(c *Config) *time.Duration { return &c.maxLifetime })},
	{"db-pool-max-idletime", "db-pool-timeout", "30", "idle time in seconds after which a connection is closed", false,
		field(seconds, func(c *Config) *time.Duration { return &c.maxIdle })},
	{"db-pool-automatic-recovery", "", "true", "a lost connection is always replaced", false, nil},
	{"db-channel", "", "pgrst", "channel on which NOTIFY reloads the schema or the configuration", false,
		field(verbatim, func(c *Config) *string { return &c.channel })},
	{"db-channel-enabled", "", "true", "listen on that channel; otherwise only signals reload", false,
		field(boolean, func(c *Config) *bool { return &c.listen })},
	{"db-config", "", "true", "read settings from ALTER ROLE … SET pgrst.… of the login, which override all others",
		false, field(boolean, func(c *Config) *bool { return &c.inDatabase })},
	{"db-pre-config", "", "",
		"function called at each load of the configuration, which sets pgrst.… with set_config; ALTER ROLE overrides it",
		false, field(verbatim, func(c *Config) *string { return &c.preConfig })},
	{"db-hoisted-tx-settings", "", "statement_timeout, plan_filter.statement_cost_limit, default_transaction_isolation",
		"settings of a function that apply to the whole transaction of a call, separated by commas", true,
		field(list, func(c *Config) *[]string { return &c.hoisted })},
	{"db-prepared-statements", "", "true",
		"use prepared statements; false behind a pooler in transaction mode, with db-channel-enabled = false",
		true, unprepared},
	{"jwt-secret", "", "",
		"32 characters or more, a JSON Web Key or key set, or @file; empty: tokens are rejected", true,
		secretField(func(c *Config) *string { return &c.secret })},
	{"jwt-secret-is-base64", "secret-is-base64", "false", "the secret is encoded in base64", true,
		field(boolean, func(c *Config) *bool { return &c.base64 })},
	{"jwt-aud", "", "", "required audience of tokens; empty: any", true,
		field(audience, func(c *Config) *string { return &c.jwt.Audience })},
	{"jwt-role-claim-key", "role-claim-key", ".role",
		"path to the role in the claims, such as .app.roles[0] or .roles[?(@ == \"editor\")]", true,
		field(verbatim, func(c *Config) *string { return &c.jwt.RoleClaim })},
	{"jwt-cache-max-entries", "", "1000", "number of verified tokens in the cache; 0: none", true, jwtCache},
	{"jwt-cache-max-lifetime", "", "",
		"seconds until a cached token is verified again; 0: at every request; empty: when it expires", true,
		jwtCacheTTL},
	{"openapi-mode", "", "follow-privileges",
		"OpenAPI description at the root: follow-privileges (of the caller), ignore-privileges, disabled", true,
		field(oneOf("follow-privileges", "ignore-privileges", "disabled"), func(c *Config) *string {
			return &c.api.OpenAPI.Mode
		})},
	{"openapi-security-active", "", "false", "the description declares token authentication", true,
		field(boolean, func(c *Config) *bool { return &c.api.OpenAPI.Security })},
	{"openapi-server-proxy-uri", "", "", "URL of this server in the description; empty: that of the request",
		true, field(proxyURI, func(c *Config) *string { return &c.api.OpenAPI.Server })},
	{"server-host", "", "!4", "address to listen on; !4, !6: all of IPv4, IPv6; *, *4, *6: all of both", false,
		field(verbatim, func(c *Config) *string { return &c.addr.host })},
	{"server-port", "", "3000", "port to listen on", false,
		field(intRange(0, 65535), func(c *Config) *int { return &c.addr.port })},
	{"server-unix-socket", "", "", "Unix socket to listen on instead of server-host and server-port", false,
		field(verbatim, func(c *Config) *string { return &c.addr.socket })},
	{"server-unix-socket-mode", "", "660", "file mode of that socket, from 600 to 777", false,
		field(socketMode, func(c *Config) *os.FileMode { return &c.addr.mode })},
	{"server-reuseport", "", "false", "allow several processes to listen on server-port", false,
		field(boolean, func(c *Config) *bool { return &c.addr.reusePort })},
	{"server-cors-allowed-origins", "", "", "allowed CORS origins, separated by commas; empty: all", true,
		field(list, func(c *Config) *[]string { return &c.api.Origins })},
	{"server-timing-enabled", "", "false", "send Server-Timing headers", true,
		field(boolean, func(c *Config) *bool { return &c.api.Features.ServerTiming })},
	{"server-trace-header", "", "", "request header to copy into the response", true,
		field(headerName, func(c *Config) *string { return &c.traceHeader })},
	{"admin-server-host", "", "", "address of the admin server; empty: that of server-host", false,
		field(verbatim, func(c *Config) *string { return &c.adminAddr.host })},
	{"admin-server-port", "", "",
		"port of the admin server with /live, /ready, /metrics, /config, /schema_cache; empty: none", false,
		field(intRange(0, 65535), func(c *Config) *int { return &c.adminAddr.port })},
	{"admin-server-unix-socket", "", "", "Unix socket of the admin server instead of a port", false,
		field(verbatim, func(c *Config) *string { return &c.adminAddr.socket })},
	{"admin-server-unix-socket-mode", "", "660", "file mode of that socket, from 600 to 777", false,
		field(socketMode, func(c *Config) *os.FileMode { return &c.adminAddr.mode })},
	{"log-level", "", "error",
		"crit, error, warn, info, debug: info and debug log all requests, every level but crit those with status 500 or more",
		false, field(logLevel, func(c *Config) *slog.Level { return &c.LogLevel })},
	{"log-query", "", "false", "log the statement of each logged request, without its values",
		false, field(boolean, func(c *Config) *bool { return &c.api.Features.LogSQL })},
	{"client-error-verbosity", "", "verbose", "members of an error: verbose (all) or minimal (code and message)",
		true, verbosity},
	{"url-use-legacy-target-names", "", "true",
		"allow filters, orders and limits to use the own name of an embedded relation with an alias", true,
		legacyNames},
}

// byName returns the setting with a name or former name.
func byName(name string) (setting, bool) {
	for _, s := range settings {
		if name == s.name || (name == s.alias && name != "") {
			return s, true
		}
	}

	return setting{}, false
}

// Help returns the settings as a table for a terminal.
func Help() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tENVIRONMENT\tDEFAULT\tMEANING")

	for _, s := range settings {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.name, s.variable(), s.def, s.helpText())
	}

	fmt.Fprintf(w, "app.settings.NAME\t%sAPP_SETTINGS_NAME\t\tparameter app.settings.NAME of every transaction\n",
		prefix)

	w.Flush()

	return b.String()
}

func (s setting) helpText() string {
	if s.set == nil {
		return "not supported: " + s.description
	}
	return s.description
}

// Example returns a configuration file with every supported setting at its default.
func Example() string {
	var b strings.Builder
	b.WriteString("# Settings of socle rest. Settings in comments have their defaults.\n")

	for _, s := range settings {
		if s.set == nil {
			continue
		}

		value := `"` + s.def + `"`
		if _, err := intRange(0, 1<<31)(s.def); err == nil {
			value = s.def
		} else if _, err := boolean(s.def); err == nil {
			value = s.def
		}

		fmt.Fprintf(&b, "\n# %s\n# %s = %s\n", s.description, s.name, value)
	}

	b.WriteString("\n# parameter of every transaction\n# app.settings.name = \"value\"\n")
	return b.String()
}
