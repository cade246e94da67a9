package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The functions below parse one setting's non-empty text. Their errors name the accepted values.
// Errors about secrets never repeat any part of the text.

func identity(text string) string { return text }

func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%q is not one of %s", text, strings.Join(words, ", "))
		}
		return text, nil
	}
}

func parseSwitch(yes, no string) func(string) (bool, error) {
	return func(text string) (bool, error) {
		text, err := oneOf(yes, no)(text)
		return text == yes, err
	}
}

func formatSwitch(yes, no string) func(bool) string {
	return func(b bool) string {
		if b {
			return yes
		}
		return no
	}
}

func address(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}

	if err != nil || strings.ContainsAny(host, "/ ") {
		return "", fmt.Errorf("%q is not host:port with a port from 0 to 65535", text)
	}

	return text, nil
}

func databaseURL(text string) (Secret, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "", errors.New(
			"is not of the form postgres://user:password@host:port/database, with special characters percent-encoded",
		)
	}

	return Secret(text), nil
}

func publicURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.User != nil || strings.ContainsAny(text, "?#") {
		return "", errors.New(
			"is not of the form https://host or https://host:port/path, without user, query or fragment",
		)
	}

	return strings.TrimRight(text, "/"), nil
}

func acmeDirectory(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", errors.New("is not of the form https://host/directory")
	}

	return text, nil
}

func storageURL(text string) (string, error) {
	if strings.HasPrefix(text, "s3:") {
		_, err := parseS3(text)
		return text, err
	}

	u, err := url.Parse(text)
	if err != nil || u.Scheme != "file" || u.Host != "" || u.Opaque != "" || strings.ContainsAny(text, "?#") ||
		!path.IsAbs(u.Path) || path.Clean(u.Path) == "/" || strings.Contains(u.Path, "\x00") {
		return "", errors.New("must be file:///absolute/path, s3://bucket or empty")
	}

	return text, nil
}

func leakedPasswords(text string) (string, error) {
	u, err := url.Parse(text)
	isService := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == ""
	if !isService && !filepath.IsAbs(text) {
		return "", errors.New("must be an http or https URL, or the absolute path of a folder")
	}
	if isService && !strings.HasSuffix(text, "/") {
		text += "/"
	}

	return text, nil
}

func smtpURL(text string) (Secret, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "smtp" && u.Scheme != "smtps") || u.Hostname() == "" ||
		(u.Path != "" && u.Path != "/") || strings.ContainsAny(text, "?#") {
		return "", errors.New(
			"is not of the form smtp://user:password@host:port or smtps://…, with special characters percent-encoded",
		)
	}

	return Secret(text), nil
}

func natsURL(text string) (Secret, error) {
	for part := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Hostname() == "" ||
			(u.Path != "" && u.Path != "/") || strings.ContainsAny(part, "?#") {
			return "", errors.New("is not of the form nats://user:password@host:4222 or tls://…, with special " +
				"characters percent-encoded, or several of them separated by commas")
		}
	}

	return Secret(text), nil
}

func mailFrom(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", fmt.Errorf("%q is not an address such as noreply@example.com or Example <noreply@example.com>", text)
	}
	return text, nil
}

func plainSecret(text string) (Secret, error) { return Secret(text), nil }

// number returns a parser of numbers within bounds.
func number(least, most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%q is not a number from %d to %d", text, least, most)
		}

		return n, nil
	}
}

func networks(text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		p, err := netip.ParsePrefix(part)
		if addr, notPrefix := netip.ParseAddr(part); notPrefix == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			p, err = addr.Prefix(addr.BitLen())
		}

		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", part)
		}

		all = append(all, p.Masked())
	}

	return all, nil
}

func showNetworks(all []netip.Prefix) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.String()
	}

	return strings.Join(texts, ",")
}

func slowRequest(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 500ms or 2s", text)
	}

	return d, nil
}

// maxDrain is as long as a service manager waits for a server to stop.
const maxDrain = time.Minute

func drain(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxDrain {
		return 0, fmt.Errorf("%q is not a duration such as 5s, up to %v", text, maxDrain)
	}

	return d, nil
}

func showDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func logLevel(text string) (slog.Level, error) {
	var level slog.Level
	text, err := oneOf("debug", "info", "warn", "error")(text)
	if err != nil {
		return level, err
	}

	return level, level.UnmarshalText([]byte(text))
}
