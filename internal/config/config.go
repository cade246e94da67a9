// Package config knows every setting of the server: its name, flag, default and
// meaning, how it is read and what it may be. One table declares them, see
// [Settings]; reading, help and printing follow from it.
//
// It looks at the environment, the flags and the files that hold secrets, and at
// nothing else: whether an address is free or a database answers is for others to find out.
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
)

// Config is what the server needs to know before it starts. [Load] makes one that is valid.
type Config struct {
	Addr           string // host:port to listen on
	DataDir        string // absolute
	DatabaseURL    Secret // of the platform database; "" for a private PostgreSQL
	PublicURL      string // without a trailing slash; "" when unknown, see BaseURL
	StorageURL     string // s3://…, see S3, or file:///absolute/path, or "" for a folder of DataDir, see StorageDir
	S3AccessKey    Secret
	S3SecretKey    Secret
	S3SessionToken Secret
	SecretKey      Secret         // as it was given; "" for one of our own, see LoadSecretKey
	RateLimit      bool           // sign-up and log-in are limited
	SignUp         bool           // anyone may create a user
	PasswordMin    int            // characters
	TrustedProxies []netip.Prefix // whose forwarding headers are believed; none: nobody's
	LogFormat      string         // text or json
	LogLevel       slog.Level
	PostgresBin    string // folder of PostgreSQL's programs, absolute; "" to look for it
	MetricsAddr    string // host:port of the metrics, or "" for none
	SMTPURL        Secret // of the server that takes mails; "" to write them to the log
	MailFrom       string // the address that mails come from; never "" beside an SMTPURL
}

// Secret is text that is never printed: only an explicit conversion to string reveals it.
type Secret string

const redacted = "[redacted]"

// String returns a placeholder, or nothing for the empty Secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format prints the placeholder whatever the verb.
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

// BaseURL returns the address under which clients reach the server, without a trailing slash: PublicURL,
// or without one how a server that listens on addr is reached from its own machine.
func (c Config) BaseURL(addr net.Addr) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}

	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}

	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}

	return "http://" + net.JoinHostPort(host, port)
}

// StorageDir returns the absolute path of the folder for files and backups, if they go to a folder.
func (c Config) StorageDir() string {
	if u, err := url.Parse(c.StorageURL); err == nil && u.Scheme == "file" && u.Path != "" {
		return filepath.FromSlash(u.Path)
	}
	return filepath.Join(c.DataDir, "storage")
}

// Shown is a setting as it may be shown to whoever administrates the instance.
type Shown struct {
	Name    string `json:"name" doc:"The environment variable."`
	Value   string `json:"value" doc:"What the server was started with; a secret is redacted."`
	Default string `json:"default"`
	Meaning string `json:"meaning"`
	Secret  bool   `json:"secret"`
}

// Shown returns the settings in the order of their declaration, secrets redacted.
func (c Config) Shown() []Shown {
	all := make([]Shown, len(settings))
	for i, s := range settings {
		all[i] = Shown{Name: s.Name, Value: s.show(c), Default: s.Default, Meaning: s.Meaning, Secret: s.Secret}
	}

	return all
}
