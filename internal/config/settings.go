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
)

// Setting is a row of the table of settings.
type Setting struct {
	Name string // of the environment variable
	// without dashes; a secret's takes the path of a file that holds it, since everyone can read arguments
	Flag    string
	Default string // as one would write it
	Meaning string // one clause, lower case, with the choices
	Secret  bool   // can be read from a file, which Name with _FILE at its end names
	Usual   string // a variable that other programs read too, and that counts if this one is not set; or ""

	set  func(*Config, string) error // also for the default
	show func(Config) string         // what set takes, secrets redacted
}

// What the environment tells commands that call a server. They may stand where a server is started, and mean nothing to it.
const (
	ClientURL        = "SOCLE_URL"
	ClientToken      = "SOCLE_TOKEN"
	ClientProject    = "SOCLE_PROJECT"
	ClientPassphrase = "SOCLE_PASSPHRASE" // of a backup; on a command line others would see it
)

// settings is the one place where a setting is declared.
var settings = []Setting{
	setting("SOCLE_ADDR", "127.0.0.1:8080", "address to listen on, host:port",
		func(c *Config) *string { return &c.Addr }, address, same),
	setting("SOCLE_DATA_DIR", "./socle-data", "folder for everything that Socle keeps",
		func(c *Config) *string { return &c.DataDir }, filepath.Abs, same),
	secret("SOCLE_DATABASE_URL",
		"postgres://… of the platform database; empty: a private PostgreSQL in the data folder",
		func(c *Config) *Secret { return &c.DatabaseURL }, databaseURL),
	setting("SOCLE_PUBLIC_URL", "",
		"address under which clients reach the server; empty: from the address it listens on",
		func(c *Config) *string { return &c.PublicURL }, publicURL, same),
	setting("SOCLE_STORAGE_URL", "",
		"where files and backups go, file:///absolute/path or s3://bucket/prefix?region=…&endpoint=…; empty: the data folder",
		func(c *Config) *string { return &c.StorageURL }, storageURL, same),
	secret("SOCLE_S3_ACCESS_KEY", "access key for an S3 storage; empty: AWS_ACCESS_KEY_ID",
		func(c *Config) *Secret { return &c.S3AccessKey }, plainSecret).or("AWS_ACCESS_KEY_ID"),
	secret("SOCLE_S3_SECRET_KEY", "secret key for an S3 storage; empty: AWS_SECRET_ACCESS_KEY",
		func(c *Config) *Secret { return &c.S3SecretKey }, plainSecret).or("AWS_SECRET_ACCESS_KEY"),
	secret("SOCLE_S3_SESSION_TOKEN", "session token of temporary keys for an S3 storage; empty: AWS_SESSION_TOKEN",
		func(c *Config) *Secret { return &c.S3SessionToken }, plainSecret).or("AWS_SESSION_TOKEN"),
	secret("SOCLE_SECRET_KEY", "32 random bytes or more as base64 or hex; empty: made once and kept in the data folder",
		func(c *Config) *Secret { return &c.SecretKey }, secretKey),
	setting("SOCLE_RATE_LIMIT", "on", "limits on sign-up and log-in: on, off",
		func(c *Config) *bool { return &c.RateLimit }, either("on", "off"), word("on", "off")),
	setting("SOCLE_SIGN_UP", "open", "who may create a user: open (anyone), closed (administrators)",
		func(c *Config) *bool { return &c.SignUp }, either("open", "closed"), word("open", "closed")),
	setting("SOCLE_PASSWORD_MIN", "8", "characters that a password has at least, 8 to 256",
		func(c *Config) *int { return &c.PasswordMin }, passwordMin, strconv.Itoa),
	setting("SOCLE_TRUSTED_PROXIES", "",
		"addresses or networks whose forwarding headers are believed, between commas; empty: nobody's",
		func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, proxies, showProxies),
	setting("SOCLE_LOG_FORMAT", "text", "form of the log: text, json",
		func(c *Config) *string { return &c.LogFormat }, oneOf("text", "json"), same),
	setting("SOCLE_LOG_LEVEL", "info", "least level that is logged: debug, info, warn, error",
		func(c *Config) *slog.Level {
			return &c.LogLevel
		}, logLevel, func(l slog.Level) string { return strings.ToLower(l.String()) }),
	setting("SOCLE_POSTGRES_BIN", "", "folder of PostgreSQL's programs; empty: the usual places",
		func(c *Config) *string { return &c.PostgresBin }, filepath.Abs, same),
	setting("SOCLE_METRICS_ADDR", "", "address for Prometheus metrics, host:port, not for the public; empty: none",
		func(c *Config) *string { return &c.MetricsAddr }, address, same),
	secret("SOCLE_SMTP_URL",
		"server that takes mails, smtp://user:password@host:587 or smtps://…; empty: mails are written to the log",
		func(c *Config) *Secret { return &c.SMTPURL }, smtpURL),
	setting("SOCLE_MAIL_FROM", "",
		"address that mails come from, such as noreply@example.com; needed beside SOCLE_SMTP_URL",
		func(c *Config) *string { return &c.MailFrom }, mailFrom, same),
}

// setting declares one that is kept in a field of Config. The empty text is the field's zero value and is not parsed.
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

// or names the variable that counts if the setting's own is not set.
func (s Setting) or(usual string) Setting {
	s.Usual = usual
	return s
}

// Settings returns all settings in the order in which they are shown.
func Settings() []Setting { return slices.Clone(settings) }

// Help returns the settings as a table for a terminal.
func Help() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FLAG\tENVIRONMENT\tDEFAULT\tMEANING")

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
