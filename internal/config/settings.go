package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Setting declares a setting.
type Setting struct {
	Name string // environment variable
	// Without dashes. A secret's flag takes a file path, since arguments are visible to all users.
	Flag    string
	Default string // as a user would write it
	Meaning string // one clause, lower case, with the choices
	Secret  bool   // can be read from the file named by Name plus _FILE
	Usual   string // other programs' conventional variable, used as a fallback; may be ""

	set  func(*Config, string) error // also applied to the default
	show func(Config) string         // as set accepts it, secrets redacted
}

// Variables for the commands that call a server. The server ignores them.
const (
	ClientURL        = "SOCLE_URL"
	ClientToken      = "SOCLE_TOKEN"
	ClientKey        = "SOCLE_KEY" // key for a project's rows API
	ClientProject    = "SOCLE_PROJECT"
	ClientPassphrase = "SOCLE_PASSPHRASE" // backup passphrase; arguments are visible to all users
)

// settings declares all server settings.
var settings = []Setting{
	setting("SOCLE_ADDR", "127.0.0.1:8080", "address to listen on, host:port",
		func(c *Config) *string { return &c.Addr }, address, identity),
	setting("SOCLE_DATA_DIR", "./socle-data", "data folder: secret key, private PostgreSQL, files and backups",
		func(c *Config) *string { return &c.DataDir }, filepath.Abs, identity),
	secret("SOCLE_DATABASE_URL",
		"URL of the platform database, postgres://…; empty: run a private PostgreSQL in the data folder",
		func(c *Config) *Secret { return &c.DatabaseURL }, databaseURL),
	secret("SOCLE_REPLICA_URL",
		"URL of standbys of that PostgreSQL, postgres://…, with all hosts: they answer reads of requests that ask for it; "+
			"empty: none",
		func(c *Config) *Secret { return &c.ReplicaURL }, databaseURL),
	setting("SOCLE_PUBLIC_URL", "",
		"public URL of the server; empty: derived from the listen address",
		func(c *Config) *string { return &c.PublicURL }, publicURL, identity),
	setting("SOCLE_TLS", "off",
		"HTTPS with a certificate of an ACME service, for the host of SOCLE_PUBLIC_URL: off, auto",
		func(c *Config) *bool { return &c.TLSAuto }, parseSwitch("auto", "off"), formatSwitch("auto", "off")),
	setting("SOCLE_TLS_CERT", "", "HTTPS with the certificate chain in this PEM file, reloaded when it changes",
		func(c *Config) *string { return &c.TLSCert }, filepath.Abs, identity),
	setting("SOCLE_TLS_KEY", "", "PEM file of the private key of SOCLE_TLS_CERT",
		func(c *Config) *string { return &c.TLSKey }, filepath.Abs, identity),
	setting("SOCLE_ACME_DIRECTORY", "https://acme-v02.api.letsencrypt.org/directory",
		"directory URL of the ACME service; its terms of service are accepted",
		func(c *Config) *string { return &c.ACMEDirectory }, acmeDirectory, identity),
	setting("SOCLE_REDIRECT_ADDR", "",
		"address on which plain HTTP is redirected to SOCLE_PUBLIC_URL, host:port; empty: none",
		func(c *Config) *string { return &c.RedirectAddr }, address, identity),
	setting("SOCLE_STORAGE_URL", "",
		"storage of files and backups, file:///absolute/path or s3://bucket/prefix?region=…&endpoint=…; "+
			"empty: the data folder",
		func(c *Config) *string { return &c.StorageURL }, storageURL, identity),
	secret("SOCLE_S3_ACCESS_KEY", "access key of the S3 storage; empty: AWS_ACCESS_KEY_ID",
		func(c *Config) *Secret { return &c.S3AccessKey }, plainSecret).or("AWS_ACCESS_KEY_ID"),
	secret("SOCLE_S3_SECRET_KEY", "secret key of the S3 storage; empty: AWS_SECRET_ACCESS_KEY",
		func(c *Config) *Secret { return &c.S3SecretKey }, plainSecret).or("AWS_SECRET_ACCESS_KEY"),
	secret("SOCLE_S3_SESSION_TOKEN", "session token of temporary S3 keys; empty: AWS_SESSION_TOKEN",
		func(c *Config) *Secret { return &c.S3SessionToken }, plainSecret).or("AWS_SESSION_TOKEN"),
	secret("SOCLE_SECRET_KEY",
		"encryption key, at least 32 random bytes in base64 or hex; empty: generated once in the data folder",
		func(c *Config) *Secret { return &c.SecretKey }, secretKey),
	setting("SOCLE_RATE_LIMIT", "on", "rate limits on sign-up and log-in: on, off",
		func(c *Config) *bool { return &c.RateLimit }, parseSwitch("on", "off"), formatSwitch("on", "off")),
	setting("SOCLE_SIGN_UP", "open", "who may create accounts: open (anyone), closed (administrators only)",
		func(c *Config) *bool { return &c.SignUp }, parseSwitch("open", "closed"), formatSwitch("open", "closed")),
	setting("SOCLE_PASSWORD_MIN", "8", "minimum length of passwords in characters, 8 to 256",
		func(c *Config) *int { return &c.PasswordMin }, number(8, 256), strconv.Itoa),
	setting("SOCLE_TRUSTED_PROXIES", "",
		"proxies whose X-Forwarded-For is trusted, addresses or networks separated by commas; empty: none",
		func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, networks, showNetworks),
	setting("SOCLE_OUTBOUND_NETWORKS", "",
		"networks besides the internet that requests chosen by projects may reach, also by plain HTTP, separated by "+
			"commas; empty: none",
		func(c *Config) *[]netip.Prefix { return &c.OutboundNetworks }, networks, showNetworks),
	setting("SOCLE_LEAKED_PASSWORDS", "https://api.pwnedpasswords.com/range/",
		"leaked passwords for the projects that check theirs: the http or https URL of a service by the range protocol of "+
			"Have I Been Pwned, or the absolute path of a folder with a file per range",
		func(c *Config) *string { return &c.LeakedPasswords }, leakedPasswords, identity),
	setting("SOCLE_LOG_FORMAT", "text", "log format: text, json",
		func(c *Config) *string { return &c.LogFormat }, oneOf("text", "json"), identity),
	setting("SOCLE_LOG_LEVEL", "info", "minimum log level: debug, info, warn, error",
		func(c *Config) *slog.Level {
			return &c.LogLevel
		}, logLevel, func(l slog.Level) string { return strings.ToLower(l.String()) }),
	setting("SOCLE_POSTGRES_BIN", "", "folder of PostgreSQL's programs; empty: search the standard locations",
		func(c *Config) *string { return &c.PostgresBin }, filepath.Abs, identity),
	setting("SOCLE_DENO_BIN", "", "folder of Deno, which runs edge functions; empty: search the standard locations",
		func(c *Config) *string { return &c.DenoBin }, filepath.Abs, identity),
	setting("SOCLE_FUNCTION_PROCESSES", "64",
		"processes of edge functions at a time, 8 to 1024; one that may allocate more than 256 MB counts as several",
		func(c *Config) *int { return &c.FunctionProcesses }, number(8, 1024), strconv.Itoa),
	setting("SOCLE_POSTGRES_ADDR", "",
		"listen address for PostgreSQL clients with database credentials, host:port; empty: disabled",
		func(c *Config) *string { return &c.PostgresAddr }, address, identity),
	setting("SOCLE_POSTGRES_TLS_CERT", "",
		"PEM file with the certificate for PostgreSQL clients; required with SOCLE_POSTGRES_ADDR",
		func(c *Config) *string { return &c.PostgresTLSCert }, filepath.Abs, identity),
	setting("SOCLE_POSTGRES_TLS_KEY", "",
		"PEM file with the key of that certificate; required with SOCLE_POSTGRES_ADDR",
		func(c *Config) *string { return &c.PostgresTLSKey }, filepath.Abs, identity),
	setting("SOCLE_CLUSTER_ADDR", "",
		"address at which other servers of the install reach this one, host:port; empty: the address towards the "+
			"platform database and a free port",
		func(c *Config) *string { return &c.ClusterAddr }, address, identity),
	secret("SOCLE_NATS_URL",
		"NATS servers that carry messages between the servers of the install, nats://… or tls://…, separated by commas; "+
			"empty: the servers connect to each other",
		func(c *Config) *Secret { return &c.NATSURL }, natsURL),
	setting("SOCLE_METRICS_ADDR", "",
		"listen address of Prometheus metrics, host:port, not for public networks; empty: disabled",
		func(c *Config) *string { return &c.MetricsAddr }, address, identity),
	setting("SOCLE_SLOW_REQUEST", "",
		"duration from which a request is logged as a warning, such as 500ms or 2s; empty: none",
		func(c *Config) *time.Duration { return &c.SlowRequest }, slowRequest, showDuration),
	setting("SOCLE_DRAIN", "5s",
		"time between SIGTERM, from which on /readyz says draining, and the end of service",
		func(c *Config) *time.Duration { return &c.Drain }, drain, time.Duration.String),
	secret("SOCLE_SMTP_URL",
		"SMTP server, smtp://user:password@host:587 or smtps://…; empty: write mails to the log",
		func(c *Config) *Secret { return &c.SMTPURL }, smtpURL),
	setting("SOCLE_MAIL_FROM", "",
		"sender address of mails, such as noreply@example.com; required with SOCLE_SMTP_URL",
		func(c *Config) *string { return &c.MailFrom }, mailFrom, identity),
}

// setting declares a setting that is stored in a Config field. An empty text is the field's zero
// value and is not parsed.
func setting[T any](
	name, def, meaning string, field func(*Config) *T, parse func(string) (T, error), print func(T) string,
) Setting {
	return Setting{
		Name: name, Flag: strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", "-"),
		Default: def, Meaning: meaning,
		set: func(c *Config, text string) (err error) {
			if text != "" {
				*field(c), err = parse(text)
			}
			return err
		},
		show: func(c Config) string { return print(*field(&c)) },
	}
}

func secret(name, meaning string, field func(*Config) *Secret, parse func(string) (Secret, error)) Setting {
	s := setting(name, "", meaning, field, parse, Secret.String)
	s.Secret = true
	s.Flag += "-file"

	return s
}

// or sets the conventional variable that is used as a fallback.
func (s Setting) or(usual string) Setting {
	s.Usual = usual
	return s
}

// Settings returns all settings in display order.
func Settings() []Setting { return slices.Clone(settings) }

// Help returns the settings as a table for a terminal.
func Help() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FLAG\tENVIRONMENT\tDEFAULT\tDESCRIPTION")

	for _, s := range settings {
		name := s.Name
		if s.Secret {
			name += "[" + fileSuffix + "]"
		}

		fmt.Fprintf(w, "--%s\t%s\t%s\t%s\n", s.Flag, name, s.Default, s.Meaning)
	}

	w.Flush()
	return b.String()
}
