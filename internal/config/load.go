package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

const (
	prefix     = "SOCLE_"
	fileSuffix = "_FILE"
)

// Load reads the settings from flags, keyed by flag name, and from an environment in [os.Environ]'s
// form. A flag overrides the environment, which overrides the default. An empty value counts as
// unset. The error has one line for each mistake, which names the variable.
func Load(environ []string, flags map[string]string) (Config, error) {
	env := map[string]string{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, prefix) {
			env[name] = value
		}
	}

	errs := unknown(env, flags)

	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if slices.ContainsFunc(settings, func(s Setting) bool { return s.Usual != "" && s.Usual == name }) {
			env[name] = value
		}
	}

	var c Config
	for _, s := range settings {
		text, err := s.text(env, flags)
		if err == nil {
			err = s.set(&c, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
	}

	if c.PostgresAddr != "" && (c.PostgresTLSCert == "" || c.PostgresTLSKey == "") {
		errs = append(errs, errors.New("SOCLE_POSTGRES_ADDR: requires SOCLE_POSTGRES_TLS_CERT and SOCLE_POSTGRES_TLS_KEY"))
	}
	if c.SMTPURL != "" && c.MailFrom == "" {
		errs = append(errs, errors.New("SOCLE_MAIL_FROM: is required with SOCLE_SMTP_URL"))
	}
	if c.ReplicaURL != "" && c.DatabaseURL == "" {
		errs = append(errs, errors.New("SOCLE_DATABASE_URL: is required with SOCLE_REPLICA_URL"))
	}
	errs = append(errs, c.checkTLS()...)
	if c.S3SessionToken == Secret(env["AWS_SESSION_TOKEN"]) && c.S3AccessKey != Secret(env["AWS_ACCESS_KEY_ID"]) {
		c.S3SessionToken = "" // belongs to other keys
	}
	if _, s3 := c.S3(); s3 && (c.S3AccessKey == "") != (c.S3SecretKey == "") {
		errs = append(errs,
			errors.New("SOCLE_STORAGE_URL: an S3 storage requires both SOCLE_S3_ACCESS_KEY and SOCLE_S3_SECRET_KEY, "+
				"or neither if a role provides credentials"))
	}

	if len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}

	return c, nil
}

// checkTLS returns the contradictions between the HTTPS settings.
func (c Config) checkTLS() (errs []error) {
	public, _ := url.Parse(c.PublicURL) // valid or empty
	secure := public != nil && public.Scheme == "https"

	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("SOCLE_TLS_CERT: SOCLE_TLS_CERT and SOCLE_TLS_KEY belong together; set both"))
	}
	if c.TLSAuto && c.TLSCert != "" {
		errs = append(errs, errors.New("SOCLE_TLS: auto and SOCLE_TLS_CERT exclude each other"))
	}
	if c.TLSCert != "" && c.PublicURL != "" && !secure {
		errs = append(errs, errors.New("SOCLE_TLS_CERT: requires a SOCLE_PUBLIC_URL that begins with https://"))
	}
	if c.TLSAuto && (!secure || !strings.Contains(public.Hostname(), ".") || net.ParseIP(public.Hostname()) != nil) {
		errs = append(errs, errors.New("SOCLE_TLS: auto requires a SOCLE_PUBLIC_URL of the form https://socle.example.com"))
	}
	if c.RedirectAddr != "" && !secure {
		errs = append(errs, errors.New("SOCLE_REDIRECT_ADDR: requires a SOCLE_PUBLIC_URL that begins with https://"))
	}

	return errs
}

// text returns the setting's value, or its default.
func (s Setting) text(env, flags map[string]string) (string, error) {
	value, file := flags[s.Flag], ""
	if s.Secret {
		value, file = "", value
	}

	if value == "" && file == "" {
		value = env[s.Name]
		if s.Secret {
			file = env[s.Name+fileSuffix]
		}
	}

	switch {
	case value != "" && file != "":
		return "", fmt.Errorf("%s%s is set too; set only one of them", s.Name, fileSuffix)
	case file != "":
		return readSecret(file)
	case value != "":
		return value, nil
	case s.Usual != "" && env[s.Usual] != "":
		return env[s.Usual], nil
	}

	return s.Default, nil
}

// readSecret returns a file's content without its trailing line break.
func readSecret(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()

	const max = 64 << 10
	content, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return "", err
	}

	content = bytes.TrimRight(content, "\r\n")
	if len(content) == 0 || len(content) > max {
		return "", fmt.Errorf("%s is empty or longer than 64 KiB", name)
	}

	return string(content), nil
}

// unknown returns an error for each unknown name, with the nearest known one.
func unknown(env, flags map[string]string) []error {
	clients := []string{ClientURL, ClientToken, ClientKey, ClientProject, ClientPassphrase}
	var names, flagNames []string
	for _, s := range settings {
		names = append(names, s.Name)
		flagNames = append(flagNames, s.Flag)

		if s.Secret {
			names = append(names, s.Name+fileSuffix)
		}
	}

	var errs []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(names, name) && !slices.Contains(clients, name) {
			errs = append(errs,
				fmt.Errorf("%s: unknown setting; did you mean %s?", name, Nearest(name, names)))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if !slices.Contains(flagNames, name) {
			errs = append(errs,
				fmt.Errorf("--%s: unknown flag; did you mean --%s?", name, Nearest(name, flagNames)))
		}
	}

	return errs
}

// Nearest returns the element of names that name begins, or the one with the smallest edit distance
// to it. names must not be empty.
func Nearest(name string, names []string) string {
	if i := slices.IndexFunc(names, func(n string) bool { return name != "" && strings.HasPrefix(n, name) }); i >= 0 {
		return names[i]
	}

	return slices.MinFunc(names, func(a, b string) int {
		return levenshtein.ComputeDistance(name, a) - levenshtein.ComputeDistance(name, b)
	})
}

// NearestWithin is [Nearest] for names with at most so many mistakes; "" if there is none.
func NearestWithin(mistakes int, name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	if nearest := Nearest(name, names); levenshtein.ComputeDistance(name, nearest) <= mistakes {
		return nearest
	}

	return ""
}

// ShellWord returns a text as a word in a shell's command.
func ShellWord(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=@%:,./"
	if strings.Trim(text, plain) == "" && text != "" {
		return text
	}

	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
