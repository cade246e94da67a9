package standalone

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The functions here parse one setting's non-empty text. Their errors say what is accepted and
// never repeat a secret.

// field returns a setting's set function from its parser and its field.
func field[T any](read func(string) (T, error), in func(*Config) *T) func(*Config, string) error {
	return func(c *Config, text string) error {
		v, err := read(text)
		if err == nil {
			*in(c) = v
		}

		return err
	}
}

func verbatim(text string) (string, error) { return text, nil }

// boolean accepts the contract's spellings, which are the letters of true or false among any other
// characters, and whole numbers, which are true above zero.
func boolean(text string) (bool, error) {
	letters := strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)

	switch letters {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}

	if n, ok := new(big.Int).SetString(strings.TrimSpace(text), 10); ok {
		return n.Sign() > 0, nil
	}

	return false, fmt.Errorf("%q is neither true nor false", text)
}

func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%q is not one of %s", text, strings.Join(words, ", "))
		}
		return text, nil
	}
}

func intRange(minimum, maximum int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < minimum || n > maximum {
			return 0, fmt.Errorf("%q is not a number from %d to %d", text, minimum, maximum)
		}

		return n, nil
	}
}

func seconds(text string) (time.Duration, error) {
	n, err := intRange(1, 1<<30)(text)
	return time.Duration(n) * time.Second, err
}

func list(text string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}

	return all, nil
}

func schemas(text string) ([]string, error) {
	all, _ := list(text)
	for _, name := range all {
		if name == "information_schema" || strings.HasPrefix(name, "pg_") {
			return nil, fmt.Errorf("%s belongs to PostgreSQL and cannot be exposed", name)
		}
	}

	if len(all) == 0 {
		return nil, errors.New("must name a schema")
	}

	return all, nil
}

// secretField returns the set function for a setting that is either text or a file name after @. A
// pipe, such as /dev/stdin, is read once.
func secretField(in func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		name, isFile := strings.CutPrefix(text, "@")
		if !isFile {
			*in(c) = text
			return nil
		}

		content, ok := c.pipes[name]
		if !ok {
			raw, err := os.ReadFile(name)
			if err != nil {
				return err
			}

			content = strings.TrimRight(string(raw), "\r\n")
			if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
				c.pipes[name] = content
			}
		}

		*in(c) = content
		return nil
	}
}

func audience(text string) (string, error) {
	if strings.Contains(text, ":") {
		if _, err := url.Parse(text); err != nil {
			return "", fmt.Errorf("%q contains a colon but is not a URI", text)
		}
	}

	return text, nil
}

func proxyURI(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%q is not of the form https://host/path", text)
	}

	return text, nil
}

func headerName(text string) (string, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == ':' || r > '~' }) {
		return "", fmt.Errorf("%q is not a header name", text)
	}
	return text, nil
}

// levelCrit is above all log records' level.
const levelCrit = slog.LevelError + 4

func logLevel(text string) (slog.Level, error) {
	levels := map[string]slog.Level{
		"crit": levelCrit, "error": slog.LevelError, "warn": slog.LevelWarn,
		"info": slog.LevelInfo, "debug": slog.LevelDebug,
	}
	l, ok := levels[text]
	if !ok {
		return 0, fmt.Errorf("%q is not one of crit, error, warn, info, debug", text)
	}

	return l, nil
}

func maxRows(c *Config, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of rows", text)
	}

	c.api.Limits.MaxRows = &n
	return nil
}

func txEnd(c *Config, text string) error {
	text, err := oneOf("commit", "commit-allow-override", "rollback", "rollback-allow-override")(text)
	c.api.Features.Rollback = strings.HasPrefix(text, "rollback")
	c.api.Features.TxOverride = strings.HasSuffix(text, "-allow-override")

	return err
}

func unprepared(c *Config, text string) error {
	enabled, err := boolean(text)
	c.api.Session.NoPreparedStatements = !enabled

	return err
}

func verbosity(c *Config, text string) error {
	text, err := oneOf("verbose", "minimal")(text)
	c.api.Features.TerseErrors = text == "minimal"

	return err
}

func socketMode(text string) (os.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n < 0o600 || n > 0o777 {
		return 0, fmt.Errorf("%q is not a mode from 600 to 777", text)
	}

	return os.FileMode(n), nil
}

func jwtCache(c *Config, text string) error {
	n, err := intRange(0, 1<<24)(text)
	c.jwt.CacheSize = n
	if n == 0 {
		c.jwt.CacheSize = -1
	}

	return err
}

func jwtCacheTTL(c *Config, text string) error {
	n, err := intRange(0, 1<<31-1)(text)
	c.jwt.CacheTTL = time.Duration(n) * time.Second
	if n == 0 {
		c.jwt.CacheSize = -1
	}

	return err
}

func legacyNames(c *Config, text string) error {
	legacy, err := boolean(text)
	c.api.Features.AliasesOnly = !legacy

	return err
}

// decodeBase64 decodes the standard and the URL alphabet, with or without padding.
func decodeBase64(text string) (string, error) {
	text = strings.NewReplacer("-", "+", "_", "/", ".", "", "=", "").Replace(strings.TrimSpace(text))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return "", errors.New("is not base64")
	}

	return string(raw), nil
}
