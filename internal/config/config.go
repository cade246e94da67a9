// Package config owns the server's settings: their names, flags, defaults, descriptions, parsing
// and validation. One table declares them, see [Settings]; parsing, help and printing are derived
// from it.
//
// It reads the environment, the flags and the secret files, and nothing else. Whether an address is
// free or a database answers is for the packages that use them.
package config

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Config is the server's configuration. [Load] returns a valid one.
type Config struct {
	Addr           string // host:port to listen on
	DataDir        string // absolute
	DatabaseURL    Secret // platform database URL; "": a private PostgreSQL
	ReplicaURL     Secret // hosts of standbys that answer reads; "": none
	PublicURL      string // without a trailing slash; "": unknown, see BaseURL
	TLSAuto        bool   // certificates from an ACME service
	TLSCert        string // certificate chain path, absolute; "": none
	TLSKey         string // private key path; never "" with a TLSCert
	ACMEDirectory  string // ACME service URL
	RedirectAddr   string // host:port for the redirect to PublicURL; "": none
	StorageURL     string // s3://…, see S3, or file:///absolute/path; "": a folder in DataDir, see StorageDir
	S3AccessKey    Secret
	S3SecretKey    Secret
	S3SessionToken Secret
	SecretKey      Secret         // as given; "": a generated key, see LoadSecretKey
	RateLimit      bool           // limits sign-up and log-in
	SignUp         bool           // anyone may create an account
	PasswordMin    int            // characters
	TrustedProxies []netip.Prefix // proxies whose forwarding headers are trusted
	LogFormat      string         // text or json
	LogLevel       slog.Level
	PostgresBin    string        // folder with PostgreSQL's programs, absolute; "": search for it
	DenoBin        string        // folder with Deno, absolute; "": search for it
	MetricsAddr    string        // host:port for metrics; "": none
	Drain          time.Duration // after SIGTERM, see server.Server.Drain
	SlowRequest    time.Duration // requests that are logged as slow; 0: none

	PostgresAddr    string // host:port for PostgreSQL clients; "": none
	PostgresTLSCert string // file with the certificate for them, absolute; never "" with a PostgresAddr
	PostgresTLSKey  string // file with its key, absolute; never "" with a PostgresAddr

	ClusterAddr string // host:port for other servers of the install; "": chosen when there are some
	NATSURL     Secret // NATS servers between them, separated by commas; "": their own connections

	LeakedPasswords  string         // range service URL, or an absolute folder
	OutboundNetworks []netip.Prefix // networks besides the internet that requests chosen by projects may reach

	SMTPURL  Secret // SMTP server; "": write mails to the log
	MailFrom string // sender address; never "" with an SMTPURL

	FunctionProcesses int // with 256 MB each
}

// Secret is text that is redacted when printed. Only an explicit conversion to string reveals it.
type Secret string

const redacted = "[redacted]"

// String returns a placeholder, or "" for the empty Secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format prints the placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText returns the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns one line NAME=value for each setting, secrets redacted.
func (c Config) String() string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "%s=%s\n", s.Name, s.show(c))
	}

	return b.String()
}

// LogValue returns the settings as a group, secrets redacted.
func (c Config) LogValue() slog.Value {
	attrs := make([]slog.Attr, len(settings))
	for i, s := range settings {
		attrs[i] = slog.String(s.Name, s.show(c))
	}

	return slog.GroupValue(attrs...)
}

// TLS reports whether the server listens for HTTPS.
func (c Config) TLS() bool { return c.TLSAuto || c.TLSCert != "" }

// BaseURL returns the address at which clients reach the server, without a trailing slash. Without
// a PublicURL it is derived from the listen address and valid on the same machine.
func (c Config) BaseURL(addr net.Addr) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}

	scheme := "http://"
	if c.TLS() {
		scheme = "https://"
	}

	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + addr.String()
	}

	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}

	return scheme + net.JoinHostPort(host, port)
}

// StorageDir returns the absolute path to the folder for files and backups, if StorageURL names a
// folder.
func (c Config) StorageDir() string {
	if u, err := url.Parse(c.StorageURL); err == nil && u.Scheme == "file" && u.Path != "" {
		return filepath.FromSlash(u.Path)
	}
	return filepath.Join(c.DataDir, "storage")
}

// Shown is a setting with its current value, for administrators.
type Shown struct {
	Name    string `json:"name" doc:"Environment variable."`
	Value   string `json:"value" doc:"Value at the start of the server; secrets are redacted."`
	Default string `json:"default"`
	Meaning string `json:"meaning"`
	Secret  bool   `json:"secret"`
}

// Shown returns the settings in declaration order, secrets redacted.
func (c Config) Shown() []Shown {
	all := make([]Shown, len(settings))
	for i, s := range settings {
		all[i] = Shown{Name: s.Name, Value: s.show(c), Default: s.Default, Meaning: s.Meaning, Secret: s.Secret}
	}

	return all
}
